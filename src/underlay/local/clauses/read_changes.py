"""Parses INSERT, UPDATE, DELETE, MERGE and TRUNCATE."""

from __future__ import annotations

from collections.abc import Collection

from underlay.errors import InvalidRequest
from underlay.local.clauses.reader import Clause, NamedTable, StatementReader, WrittenName, place_of
from underlay.local.clauses.subqueries import refuse_subqueries
from underlay.local.clauses.syntax import (
    Action,
    Assignments,
    Delete,
    Insert,
    JoinedSource,
    Match,
    Truncate,
    Update,
    WrittenMerge,
    WrittenWhen,
)

_MERGE_HINT = "Write MERGE INTO, or call table.upsert in Python."
_RETURNING_HINT = "Leave it out. What a merge changed is in the counts, and in table.changes() in Python."
_ONE_SOURCE = "Write one table or one subquery: FROM (SELECT …) AS s."
_END = ("WHERE", "RETURNING")
_WHEN = ("WHEN", "RETURNING")


def read_with(reader: StatementReader) -> Clause | None:
    """WITH and its queries, if they are next, before the statement that changes the table."""
    begin = reader.mark()
    if not reader.take("WITH"):
        return None
    reader.take("RECURSIVE")
    while True:
        reader.name("a name for the query")
        if reader.next_word() == "(":
            reader.names()
        if reader.take("USING", "KEY"):
            reader.items("a column")
        reader.expect("AS")
        reader.take("NOT")
        reader.take("MATERIALIZED")
        reader.parenthesised("a query")
        if not reader.take(","):
            return reader.piece_from(begin)


def read_insert(reader: StatementReader) -> Insert:
    """What follows INSERT."""
    if reader.next_word() in ("OR", "OVERWRITE"):
        raise reader.unsupported("INSERT adds rows only", _MERGE_HINT)
    reader.expect("INTO")
    target = reader.table()
    alias = reader.name("an alias").name if reader.take("AS") else target.table
    columns = reader.names() if reader.next_word() == "(" and not _begins_query(reader.next_word(1)) else ()
    is_by_name = reader.take("BY", "NAME")
    if not is_by_name:
        reader.take("BY", "POSITION")
    if is_by_name and columns:
        raise InvalidRequest(
            "BY NAME takes the names of the columns from the query",
            place=columns[0].piece.place,
            found=columns[0].name,
            hint="Leave out the columns, or BY NAME.",
        )
    if reader.next_word() == "DEFAULT":
        raise reader.unsupported("a row of nothing but defaults cannot be inserted", "Write VALUES with a column.")
    _refuse_outside(reader, ("ON", "CONFLICT"), _MERGE_HINT)
    if not _begins_query(reader.next_word()):
        raise reader.refuse("VALUES or a query")
    begin = reader.mark()
    rows = reader.expression("VALUES or a query", ("RETURNING",))
    end = reader.mark()
    reader.go_back(begin)
    values = () if is_by_name else _values(reader, end)
    reader.go_back(end)
    returning = _returning(reader)
    reader.expect_end()
    return Insert(
        target=target,
        alias=alias,
        columns=columns,
        is_by_name=is_by_name,
        rows=rows,
        values=values,
        returning=returning,
    )


def _values(reader: StatementReader, end: int) -> tuple[tuple[Clause, ...], ...]:
    """The rows of VALUES, up to an end; none when the query contains more than that."""
    if not reader.take("VALUES"):
        return ()
    rows = [reader.items("a value")]
    while reader.take(","):
        rows.append(reader.items("a value"))
    return tuple(rows) if reader.mark() == end else ()


def read_update(reader: StatementReader) -> Update:
    """What follows UPDATE."""
    target = reader.table()
    alias = reader.alias(("SET",))
    reader.expect("SET")
    assignments = _assignments(reader, ("FROM", *_END))
    source = _sources(reader) if reader.take("FROM") else None
    where, returning = _where(reader)
    return Update(
        target=target,
        alias=alias or target.table,
        assignments=assignments,
        source=source,
        where=where,
        returning=returning,
    )


def read_delete(reader: StatementReader) -> Delete:
    """What follows DELETE."""
    reader.expect("FROM")
    target = reader.table()
    alias = reader.alias(("USING", *_END))
    source = _sources(reader) if reader.take("USING") else None
    where, returning = _where(reader)
    return Delete(target=target, alias=alias or target.table, source=source, where=where, returning=returning)


def read_truncate(reader: StatementReader) -> Truncate:
    """What follows TRUNCATE."""
    reader.take("TABLE")
    target = reader.table()
    reader.expect_end()
    return Truncate(target=target)


def read_merge(reader: StatementReader) -> WrittenMerge:
    """What follows MERGE."""
    reader.expect("INTO")
    target = reader.table()
    alias = reader.alias(("USING",))
    reader.expect("USING")
    source = _source(reader, ("ON", "USING", *_WHEN))
    if reader.next_word() == "USING":
        raise reader.unsupported("MERGE needs ON", f"Write ON {alias or target.table}.id = {source.alias}.id.")
    reader.expect("ON")
    on = reader.expression("a condition", _WHEN)
    clauses = []
    while reader.take("WHEN"):
        clauses.append(_clause(reader))
    _refuse_returning(reader)
    if not clauses:
        raise reader.refuse("WHEN MATCHED or WHEN NOT MATCHED")
    reader.expect_end()
    return WrittenMerge(target=target, alias=alias or target.table, source=source, on=on, clauses=tuple(clauses))


def _clause(reader: StatementReader) -> WrittenWhen:
    begin = reader.mark() - 1
    match = Match.BOTH
    if reader.take("NOT"):
        match = Match.SOURCE_ONLY
    reader.expect("MATCHED")
    if match is Match.SOURCE_ONLY and reader.take("BY"):
        match = Match.TARGET_ONLY if reader.take_one("SOURCE", "TARGET") == "SOURCE" else match
        if reader.next_word(-1) not in ("SOURCE", "TARGET"):
            raise reader.refuse("SOURCE or TARGET")
    condition = reader.expression("a condition", ("THEN",)) if reader.take("AND") else None
    reader.expect("THEN")
    columns: tuple[WrittenName, ...] = ()
    values: tuple[Clause, ...] = ()
    if match is not Match.SOURCE_ONLY and reader.take("DELETE"):
        action = Action.DELETE
    elif match is not Match.SOURCE_ONLY and reader.take("UPDATE"):
        action = Action.UPDATE_ALL
        if reader.take("SET") and not reader.take("*"):
            action = Action.UPDATE
            assignments = _assignments(reader, _WHEN)
            columns, values = tuple(one for one, _ in assignments), tuple(value for _, value in assignments)
        if action is Action.UPDATE_ALL and match is Match.TARGET_ONLY:
            raise reader.refuse("SET column = value: there is no row of the source")
    elif match is Match.SOURCE_ONLY and reader.take("INSERT"):
        action, columns, values = _inserted(reader)
    else:
        expected = "INSERT" if match is Match.SOURCE_ONLY else "UPDATE or DELETE"
        raise reader.refuse(expected, "Leave out clauses that do nothing, and give the others an AND.")
    return WrittenWhen(
        match=match,
        condition=condition,
        action=action,
        columns=columns,
        values=values,
        piece=reader.piece_from(begin),
    )


def _inserted(reader: StatementReader) -> tuple[Action, tuple[WrittenName, ...], tuple[Clause, ...]]:
    if reader.take("*") or reader.is_done or reader.next_word() in _WHEN or reader.take("BY", "NAME"):
        reader.take("*")
        return Action.INSERT_ALL, (), ()
    columns = reader.names() if reader.next_word() == "(" else ()
    if not reader.take("VALUES"):
        raise reader.refuse("VALUES or *")
    begin = reader.mark()
    values = reader.items("a value")
    if columns and len(columns) != len(values):
        raise InvalidRequest(
            "there are not as many values as columns",
            place=reader.piece_from(begin).place,
            expected=len(columns),
            found=len(values),
        )
    return Action.INSERT, columns, values


def _assignments(reader: StatementReader, stops: Collection[str]) -> Assignments:
    found = [_assignment(reader, stops)]
    while reader.take(","):
        found.append(_assignment(reader, stops))
    return tuple(found)


def _assignment(reader: StatementReader, stops: Collection[str]) -> tuple[WrittenName, Clause]:
    if reader.next_word() == "(":
        raise reader.unsupported("columns are set one by one", "Write SET a = 1, b = 2.")
    column = reader.path("the name of a column")
    if reader.next_word() == "[":
        raise reader.unsupported("a list or map is set as a whole", "Write SET tags = list_append(tags, 'new').")
    reader.expect("=")
    return column, reader.expression("a value", (",", *stops))


def _source(reader: StatementReader, stops: Collection[str]) -> JoinedSource:
    begin = reader.mark()
    default: str | None = None
    table: NamedTable | None = None
    if reader.next_word() == "(":
        reader.parenthesised("a query")
    elif reader.next_word(1) == ".":
        table = reader.table(is_target=False)
        default = table.table
        reader.take_version()
    else:
        default = reader.name("a table or a query in parentheses").name
    piece = reader.piece_from(begin)
    if reader.next_word() == "(":
        raise reader.unsupported("a function is not a table here", "Write (SELECT * FROM …) AS s.")
    written = reader.alias(stops)
    alias = written or default
    if alias is None:
        raise reader.refuse("AS and a name for the query")
    if reader.next_word() == "(":  # AS s (a, b) is part of the source: it names the columns
        reader.names()
        piece = reader.piece_from(begin)
    if not reader.is_done and reader.next_word() not in stops:
        raise reader.unsupported("a change reads one source", _ONE_SOURCE)
    return JoinedSource(
        piece=piece, alias=alias, whole=reader.piece_from(begin), table=table if written is None else None
    )


def _sources(reader: StatementReader) -> JoinedSource:
    """One source, or several: tables, queries and functions with commas and joins between them."""
    begin = reader.mark()
    piece = reader.expression("a table or a query in parentheses", _END)
    end = reader.mark()
    reader.go_back(begin)
    try:
        one = _source(reader, _END)
    except InvalidRequest:  # not one table or query: the engine reports what is wrong, if anything is
        one = None
    if one is not None and reader.mark() == end:
        return one
    reader.go_back(end)
    return JoinedSource(piece=piece, alias=None, whole=piece)


def _where(reader: StatementReader) -> tuple[Clause | None, Clause | None]:
    """WHERE and RETURNING."""
    where = reader.expression("a condition", ("RETURNING",)) if reader.take("WHERE") else None
    returning = _returning(reader)
    reader.expect_end()
    return where, returning


def _returning(reader: StatementReader) -> Clause | None:
    if not reader.take("RETURNING"):
        return None
    found = reader.expression("what to return")
    refuse_subqueries(
        found, "RETURNING", "RETURNING can only use the changed rows. Run a separate query for anything else."
    )
    return found


def _refuse_returning(reader: StatementReader) -> None:
    if reader.next_word() == "RETURNING":
        raise reader.unsupported("RETURNING is not available", _RETURNING_HINT)


def _refuse_outside(reader: StatementReader, words: tuple[str, ...], hint: str) -> None:
    found = reader.find_outside(words)
    if found is not None:
        at, text = found
        raise InvalidRequest(f"{text} is not available", place=place_of(reader.text, at), hint=hint)


def _begins_query(word: str) -> bool:
    return word in ("VALUES", "SELECT", "WITH", "FROM", "TABLE", "(", "PIVOT", "UNPIVOT")
