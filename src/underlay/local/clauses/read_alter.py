"""Parses ALTER TABLE: one or more changes, which are committed together, or a new name."""

from __future__ import annotations

from collections.abc import Callable

from underlay.change.define.evolution import Evolution
from underlay.local.clauses.definitions import AlterStep, AlterTable
from underlay.local.clauses.read_definitions import read_properties, read_property_name
from underlay.local.clauses.reader import StatementReader
from underlay.prune.predicates.operand import format_column

_ACTIONS = "ADD, DROP, RENAME, ALTER COLUMN, SET or UNSET TBLPROPERTIES, SET PARTITIONED BY, SET SORTED BY or COMMENT"
_OPTIONS = ("NOT", "NULL", "DEFAULT", "COMMENT", "FIRST", "AFTER", "CHECK", "PRIMARY", "UNIQUE", "REFERENCES")
Apply = Callable[[Evolution], object]


def read_alter(reader: StatementReader) -> AlterTable:
    """What follows ALTER."""
    if not reader.take("TABLE"):
        raise reader.refuse("TABLE")
    is_optional = reader.take("IF", "EXISTS")
    target = reader.table()
    if reader.take("RENAME", "TO"):
        new_name = reader.table()
        reader.expect_end()
        return AlterTable(target=target, is_optional=is_optional, new_name=new_name)
    steps = _steps(reader)
    while reader.take(","):
        steps += _steps(reader)
    reader.expect_end()
    return AlterTable(target=target, is_optional=is_optional, steps=tuple(steps))


def _steps(reader: StatementReader) -> list[AlterStep]:
    begin = reader.mark()
    for words, read in _READERS.items():
        if reader.take(*words):
            found = read(reader)
            piece = reader.piece_from(begin)
            return [AlterStep(piece=piece, apply=one.apply, condition=one.condition) for one in found]
    raise reader.refuse(_ACTIONS)


class _Read:
    """What a change does, and its condition: a column that must exist, or must not."""

    def __init__(self, apply: Apply, condition: tuple[str, bool] | None = None) -> None:
        self.apply = apply
        self.condition = condition


def _path(reader: StatementReader) -> str:
    """A column, or a field of a struct by its path."""
    parts = [reader.name("the name of a column").name]
    while reader.take("."):
        parts.append(reader.name("the name of a field").name)
    return format_column(tuple(parts))


def _add(reader: StatementReader) -> list[_Read]:
    if reader.take("CONSTRAINT"):
        name = reader.name("the name of a check").name
        reader.expect("CHECK")
        return [_check(name, reader.parenthesised("a condition").text)]
    if reader.take("PRIMARY", "KEY"):
        columns = [one.name for one in reader.names()]
        return [_Read(lambda change: change.set_key(columns))]
    if reader.next_word() in ("CHECK", "UNIQUE", "FOREIGN"):
        raise reader.refuse("COLUMN, PRIMARY KEY, or CONSTRAINT and a name", "Write ADD CONSTRAINT name CHECK (…).")
    if reader.take("COLUMNS"):
        reader.expect("(")
        found = [_column(reader)]
        while reader.take(","):
            found.append(_column(reader))
        reader.expect(")")
        return found
    reader.take("COLUMN")
    return [_column(reader)]


def _check(name: str, condition: str) -> _Read:
    return _Read(lambda change: change.add_check(name, condition))


def _column(reader: StatementReader) -> _Read:
    is_optional = reader.take("IF", "NOT", "EXISTS")
    name = _path(reader)
    kind = _type(reader)
    is_required, default, comment, after, is_first = False, None, None, None, False
    while not reader.is_done and reader.next_word() not in (",", ")"):
        if reader.take("NOT", "NULL"):
            is_required = True
        elif reader.take("DEFAULT"):
            default = _literal(reader)
        elif reader.take("COMMENT"):
            comment = reader.string("text in single quotes")
        elif reader.take("FIRST"):
            is_first = True
        elif reader.take("AFTER"):
            after = _path(reader)
        elif not reader.take("NULL"):
            raise reader.refuse("NOT NULL, DEFAULT, COMMENT, FIRST or AFTER")

    def apply(change: Evolution) -> None:
        type_ = f"{kind} not null" if is_required else kind
        change.add_column(name, type_, default=default, comment=comment, after=after)
        if is_first:
            change.move_column(name)

    return _Read(apply, (name, False) if is_optional else None)


def _type(reader: StatementReader) -> str:
    """The words of a type: all up to a comma or an option outside of brackets."""
    begin, depth = reader.mark(), 0
    while not reader.is_done:
        word = reader.next_word()
        if depth == 0 and (word in (",", ")") or word in _OPTIONS):
            break
        depth += (word in ("(", "[", "<")) - (word in (")", "]", ">"))
        reader.go_back(reader.mark() + 1)
    if reader.mark() == begin:
        raise reader.refuse("a type")
    return reader.piece_from(begin).text


def _literal(reader: StatementReader) -> str | None:
    if reader.take("NULL"):
        return None
    begin = reader.mark()
    reader.take("-")
    if reader.is_done or reader.next_word() in (",", ")"):
        raise reader.refuse("a value")
    reader.go_back(reader.mark() + 1)
    text = reader.piece_from(begin).text
    return text[1:-1].replace("''", "'") if text.startswith("'") else text


def _drop(reader: StatementReader) -> list[_Read]:
    if reader.take("CONSTRAINT"):
        is_optional = reader.take("IF", "EXISTS")
        name = reader.name("the name of a check").name
        return [_Read(lambda change: change.drop_check(name), (f"check {name}", True) if is_optional else None)]
    if reader.take("PRIMARY", "KEY"):
        return [_Read(lambda change: change.set_key([]))]
    if reader.take("COLUMNS"):
        return [_dropped(format_column((one.name,))) for one in reader.names()]
    reader.take("COLUMN")
    is_optional = reader.take("IF", "EXISTS")
    return [_dropped(_path(reader), is_optional=is_optional)]


def _dropped(name: str, *, is_optional: bool = False) -> _Read:
    return _Read(lambda change: change.drop_column(name), (name, True) if is_optional else None)


def _rename(reader: StatementReader) -> list[_Read]:
    reader.take("COLUMN")
    old = _path(reader)
    reader.expect("TO")
    new = reader.name("the new name").name
    return [_Read(lambda change: change.rename_column(old, new))]


def _alter(reader: StatementReader) -> list[_Read]:
    reader.take("COLUMN")
    name = _path(reader)
    if reader.take("SET", "NOT", "NULL"):
        return [_Read(lambda change: change.make_required(name))]
    if reader.take("DROP", "NOT", "NULL"):
        return [_Read(lambda change: change.make_nullable(name))]
    if reader.take("COMMENT"):
        text = None if reader.take("NULL") else reader.string("text in single quotes, or NULL")
        return [_Read(lambda change: change.set_comment(text, name))]
    if reader.take("FIRST"):
        return [_Read(lambda change: change.move_column(name))]
    if reader.take("AFTER"):
        other = _path(reader)
        return [_Read(lambda change: change.move_column(name, after=other))]
    if reader.take("SET", "DATA", "TYPE") or reader.take("TYPE"):
        kind = _type(reader)
        return [_Read(lambda change: change.widen_column(name, kind))]
    raise reader.refuse("TYPE, SET NOT NULL, DROP NOT NULL, COMMENT, FIRST or AFTER")


def _set(reader: StatementReader) -> list[_Read]:
    if reader.take("TBLPROPERTIES"):
        return [_property(name, value) for name, value in read_properties(reader).items()]
    if reader.take("PARTITIONED", "BY"):
        transforms = [piece.text for piece in reader.items("a column, or a transform such as month(pickup)")]
        return [_Read(lambda change: change.set_partition_by(transforms))]
    if reader.take("SORTED", "BY"):
        columns = [piece.text for piece in reader.items("a column")]
        return [_Read(lambda change: change.set_sort_by(columns))]
    raise reader.refuse("TBLPROPERTIES, PARTITIONED BY or SORTED BY")


def _property(name: str, value: str) -> _Read:
    return _Read(lambda change: change.set_property(name, value))


def _reset(reader: StatementReader) -> list[_Read]:
    if reader.take("PARTITIONED", "BY"):
        return [_Read(lambda change: change.set_partition_by([]))]
    if reader.take("SORTED", "BY"):
        return [_Read(lambda change: change.set_sort_by([]))]
    raise reader.refuse("PARTITIONED BY or SORTED BY")


def _unset(reader: StatementReader) -> list[_Read]:
    reader.expect("TBLPROPERTIES")
    reader.expect("(")
    names = [read_property_name(reader)]
    while reader.take(","):
        names.append(read_property_name(reader))
    reader.expect(")")
    return [_unset_property(name) for name in names]


def _unset_property(name: str) -> _Read:
    return _Read(lambda change: change.drop_property(name))


def _comment(reader: StatementReader) -> list[_Read]:
    text = None if reader.take("NULL") else reader.string("text in single quotes, or NULL")
    return [_Read(lambda change: change.set_comment(text))]


_READERS: dict[tuple[str, ...], Callable[[StatementReader], list[_Read]]] = {
    ("ADD",): _add,
    ("DROP",): _drop,
    ("RENAME",): _rename,
    ("ALTER",): _alter,
    ("SET",): _set,
    ("RESET",): _reset,
    ("UNSET",): _unset,
    ("COMMENT",): _comment,
}
