"""Prepares the SQL texts of one statement for DuckDB: checked, with parameters, and with one time for all clocks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from underlay.errors import BadPredicate, InvalidRequest, UnderlayError
from underlay.local.conditions.condition_text import all_with_moments, checked_text
from underlay.local.text.statement import is_rewritten_right
from underlay.prune.parse.parameters import Parameters, number_in_all
from underlay.prune.parse.sql import parse_condition, tokens_of
from underlay.prune.predicates.operand import ColumnPath
from underlay.values.parameters import Given

VALUE_HINT = "Write SQL, such as fare * 1.1 or 'JFK' in quotes, or a Python value as ul.lit(value)."

_NO_CONDITION, _NO_EXPRESSION = "not a condition on the columns", "not an expression of the columns"


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlText:
    """One text of a statement, and what errors call it."""

    place: str
    text: str
    is_condition: bool = False
    numbers: tuple[tuple[int, ColumnPath], ...] = ()
    """Columns, each with its side, whose nanoseconds the text names (`exact_moments`)."""

    @property
    def tree(self) -> exp.Expr:
        """sqlglot's tree, which nobody may change."""
        return parse_condition(self.text)

    def given(self, parameters: Parameters) -> dict[str, object] | None:
        """The parameters that the text names: DuckDB refuses others."""
        used = {node.name.lower() for node in self.tree.find_all(exp.Placeholder)}
        return {name: value for name, value in parameters.values.items() if name in used} or None


def are_rewritten_right(texts: Iterable[SqlText]) -> bool:
    """Whether DuckDB simplifies all of them without changing their meaning."""
    return all(is_rewritten_right(tokens_of(one.text)) for one in texts)


def read_texts(
    texts: Sequence[SqlText], columns: Iterable[str], given: Given | None
) -> tuple[list[SqlText], Parameters]:
    """The texts as DuckDB accepts them, and the values of their parameters.

    `columns` are the names that they may use. Raises BadPredicate for a condition, InvalidRequest for another
    expression, that is not about a single row, or whose value changes from call to call.
    """
    words = []
    for one in texts:
        if not isinstance(one.text, str) or not one.text.strip():
            raise InvalidRequest("not an SQL expression", place=one.place, found=repr(one.text), hint=VALUE_HINT)
        try:
            words.append((one.text, tokens_of(one.text)))
        except BadPredicate as error:
            raise located(error, one) from None
    numbered, parameters = number_in_all(words, given)
    checked = []
    for one, text in zip(texts, numbered, strict=True):
        try:
            checked.append(checked_text(text))
        except BadPredicate as error:
            raise located(error, one) from None
    timed = all_with_moments(checked, columns)
    read = [
        SqlText(place=one.place, text=text, is_condition=one.is_condition)
        for one, text in zip(texts, timed, strict=True)
    ]
    return read, parameters


def located(error: UnderlayError, text: SqlText) -> UnderlayError:
    """The error of a text, with the text's purpose as its place. A value that does not parse is not called a
    condition.
    """
    if type(error) is BadPredicate and not text.is_condition:
        is_syntax = error.found is not None and (error.place or "").startswith("line ")
        problem = "not an SQL expression" if is_syntax else error.problem.replace(_NO_CONDITION, _NO_EXPRESSION)
        problem = problem.replace("the predicate", "the expression")
        hint = VALUE_HINT if is_syntax or "predicate" in (error.hint or "") else error.hint
        error = InvalidRequest(problem, place=error.place, expected=error.expected, found=error.found, hint=hint)
    return error.at(text.place)
