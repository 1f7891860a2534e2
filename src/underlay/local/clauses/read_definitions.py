"""Parses CREATE TABLE, DROP TABLE and COMMENT ON."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from underlay.errors import InvalidRequest
from underlay.local.clauses.definitions import CommentOn, CreateTable, DropTable
from underlay.local.clauses.reader import Clause, NamedTable, StatementReader, WrittenName
from underlay.schema.convert.ddl import parse_ddl
from underlay.schema.table_schema import TableSchema

_KEY_HINT = "A table has one key: PRIMARY KEY after one column, or PRIMARY KEY (a, b) after all."
_INK = re.compile(r"\S")
_UNCHECKED = ("UNIQUE", "FOREIGN", "REFERENCES", "GENERATED", "EXCLUDE", "COLLATE")


def read_create(reader: StatementReader) -> CreateTable:
    """What follows CREATE."""
    is_replacing = reader.take("OR", "REPLACE")
    if not reader.take("TABLE"):
        raise reader.refuse("TABLE", "A lake has tables, and no views, schemas, indexes or macros of SQL.")
    is_optional = reader.take("IF", "NOT", "EXISTS")
    if is_optional and is_replacing:
        raise InvalidRequest("OR REPLACE and IF NOT EXISTS contradict each other", hint="Leave out one of them.")
    target = reader.table()
    columns = ColumnList(reader).read_all() if reader.next_word() == "(" else None
    sort_by: tuple[str, ...] = ()
    partition_by: tuple[str, ...] = ()
    properties: dict[str, str] = {}
    layout: tuple[Clause, ...] = () if columns is None else columns.key_pieces
    comment = None
    while not reader.is_done and not reader.take("AS"):
        if reader.take("PARTITIONED", "BY"):
            layout += (pieces := reader.items("a column, or a transform such as month(pickup)"))
            partition_by = _texts(pieces)
        elif reader.take("SORTED", "BY"):
            layout += (pieces := reader.items("a column"))
            sort_by = _texts(pieces)
        elif reader.take("TBLPROPERTIES"):
            properties |= read_properties(reader)
        elif reader.take("COMMENT"):
            reader.take("=")
            comment = reader.string("text in single quotes")
        else:
            raise reader.refuse("PARTITIONED BY, SORTED BY, TBLPROPERTIES, COMMENT or AS")
    rows = reader.rest("a query") if not reader.is_done or reader.next_word(-1) == "AS" else None
    if (rows is None) == (columns is None):
        if rows is None:
            raise reader.refuse("columns in parentheses, or AS and a query")
        raise InvalidRequest(
            "a table created from a query takes its columns from it",
            place=rows.place,
            hint="Leave out the columns, or create the table and INSERT INTO it.",
        )
    return CreateTable(
        target=target,
        is_replacing=is_replacing,
        is_optional=is_optional,
        columns=None if columns is None else columns.schema,
        rows=rows,
        key=() if columns is None else columns.key,
        sort_by=sort_by,
        partition_by=partition_by,
        properties=properties,
        comment=comment,
        checks={} if columns is None else columns.checks,
        layout=layout,
    )


def read_drop(reader: StatementReader) -> DropTable:
    """What follows DROP."""
    if not reader.take("TABLE"):
        raise reader.refuse("TABLE")
    is_optional = reader.take("IF", "EXISTS")
    target = reader.table()
    reader.expect_end()
    return DropTable(target=target, is_optional=is_optional)


def read_comment(reader: StatementReader) -> CommentOn:
    """What follows COMMENT."""
    reader.expect("ON")
    kind = reader.take_one("TABLE", "COLUMN")
    column: WrittenName | None = None
    if kind == "TABLE":
        target = reader.table()
    elif kind == "COLUMN":
        dataset = reader.name("dataset.table.column")
        reader.expect(".")
        table = reader.name("dataset.table.column")
        reader.expect(".")
        column = reader.name("the name of a column")
        piece = Clause(reader.text, dataset.piece.begin, table.piece.end)
        target = NamedTable(dataset=dataset.name, table=table.name, piece=piece)
    else:
        raise reader.refuse("TABLE or COLUMN")
    reader.expect("IS")
    text = None if reader.take("NULL") else reader.string("text in single quotes, or NULL")
    reader.expect_end()
    return CommentOn(target=target, column=column, text=text)


def read_properties(reader: StatementReader) -> dict[str, str]:
    """`('codec' = 'zstd', block_rows = 1000)`."""
    found: dict[str, str] = {}
    reader.expect("(")
    while True:
        name = read_property_name(reader)
        reader.expect("=")
        found[name] = _property_value(reader)
        if not reader.take(","):
            break
    reader.expect(")")
    return found


def read_property_name(reader: StatementReader) -> str:
    """A name in single quotes, or without."""
    mark = reader.mark()
    try:
        return reader.string("the name of a property")
    except InvalidRequest:
        reader.go_back(mark)
    return reader.name("the name of a property").name


def _property_value(reader: StatementReader) -> str:
    piece = reader.expression("a value", (",",))
    text = piece.text
    return text[1:-1].replace("''", "'") if text.startswith("'") else text


def _texts(pieces: Iterable[Clause]) -> tuple[str, ...]:
    return tuple(piece.text for piece in pieces)


class ColumnList:
    """Columns as written, with the key and the checks among them."""

    def __init__(self, reader: StatementReader) -> None:
        self.key: tuple[str, ...] = ()
        self.key_pieces: tuple[Clause, ...] = ()
        self.checks: dict[str, Clause] = {}
        self._reader = reader
        self._names: list[str] = []
        self._pieces: list[Clause] = []
        self._holes: list[Clause] = []

    def read_all(self) -> ColumnList:
        """Columns and constraints in parentheses."""
        self._reader.expect("(")
        self._read_item()
        while self._reader.take(","):
            self._read_item()
        self._reader.expect(")")
        return self

    @property
    def schema(self) -> TableSchema:
        """The columns. All other text becomes blanks, so that errors have positions in the whole text. Raises
        InvalidRequest.
        """
        if not self._pieces:
            raise InvalidRequest("a table needs at least one column")
        text = self._reader.text
        kept = list(_INK.sub(" ", text))
        for number, piece in enumerate(self._pieces):
            kept[piece.begin : piece.end] = piece.text
            if number:
                kept[piece.begin - 1] = ","  # a blank, the comma itself, or the end of another column
        for hole in self._holes:
            kept[hole.begin : hole.end] = _INK.sub(" ", hole.text)
        try:
            return parse_ddl("".join(kept))
        except InvalidRequest as error:
            path = error.place or ""
            named = [at for at, name in enumerate(self._names) if path == name or path.startswith(f"{name}.")]
            raise (error.at(self._pieces[named[-1]].place) if named else error) from None

    def _read_item(self) -> None:
        reader = self._reader
        name = reader.name("a name").name if reader.take("CONSTRAINT") else None
        if reader.take("PRIMARY", "KEY"):
            names = reader.names()
            self._set_key(tuple(one.name for one in names), names[0].piece)
            self.key_pieces = tuple(one.piece for one in names)
        elif reader.take("CHECK"):
            self._add_check(name or f"check_{len(self.checks) + 1}", reader.parenthesised("a condition"))
        elif name is not None or reader.next_word() in ("UNIQUE", "FOREIGN"):
            raise reader.refuse("PRIMARY KEY or CHECK", "Tables have no other constraints.")
        else:
            self.read_column()

    def read_column(self, stops: Collection[str] = ()) -> WrittenName:
        """A column, up to a comma, a parenthesis that closes, or one of these words."""
        reader = self._reader
        begin = reader.mark()
        column = reader.name("the name of a column")
        depth = 0
        while not reader.is_done:
            word, at = reader.next_word(), reader.mark()
            if depth == 0 and (word in (",", ")") or word in stops):
                break
            if depth == 0 and reader.take("PRIMARY", "KEY"):
                self._set_key((column.name,), reader.piece_from(at))
                self._holes.append(reader.piece_from(at))
            elif depth == 0 and reader.take("CHECK"):
                self._add_check(f"{column.name}_check", reader.parenthesised("a condition"))
                self._holes.append(reader.piece_from(at))
            elif depth == 0 and word in _UNCHECKED:
                raise reader.refuse("NOT NULL, DEFAULT, COMMENT, PRIMARY KEY or CHECK")
            else:
                depth += (word in ("(", "[", "<")) - (word in (")", "]", ">"))
                reader.go_back(at + 1)
        self._names.append(column.name)
        self._pieces.append(reader.piece_from(begin))
        return column

    def _set_key(self, columns: tuple[str, ...], piece: Clause) -> None:
        if self.key:
            raise InvalidRequest("the key is given twice", place=piece.place, found=", ".join(columns), hint=_KEY_HINT)
        self.key = columns

    def _add_check(self, name: str, condition: Clause) -> None:
        if name in self.checks:
            raise InvalidRequest("two checks have the same name", place=condition.place, found=name)
        self.checks[name] = condition
