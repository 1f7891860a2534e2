"""Words of SQL as DuckDB's lexer finds them."""

from __future__ import annotations

import duckdb
import pytest

from underlay.errors import InvalidRequest
from underlay.local.text.words import WordType, ends_statement, split_statements, words_of

TEXTS = [
    "select 1",
    'select a.b, "quoted ""name""" from x.y where s = \'it\'\'s\' -- a comment; with it',
    "select /* outer /* inner ; */ still */ 1.5e-3, .5, 1_000 from t",
    "select E'a\\'b;c', x'00ff', $$a ; b$$, $tag$ $$ ; $tag$ where a->>'b' = ?",
    "select $name, $1, naïve, 東京, t.列 from d.t at (version => 7)",
    "with a as (select 1) select * from a where x <> 2 and y::int >= 3 || 'x'",
    "select '--no comment', '/*', \"--\" from t;",
    "select 1\u00a0+\u20032",
]


@pytest.mark.parametrize("text", TEXTS)
def test_words_begin_where_those_of_duckdb_begin(text: str):
    places = [at for at, kind in duckdb.tokenize(text.replace("\u00a0", " ").replace("\u2003", " "))
              if kind is not duckdb.token_type.comment]  # fmt: skip
    ours = [len(text[: word.start].encode()) for word in words_of(text)]
    if text.isascii():
        assert set(ours) >= set(places)
    assert [word.text for word in words_of(text)] == [word.text for word in words_of(f"-- before\n{text} /* after */")]


def test_what_words_say():
    words = words_of("SELECT \"a\"\"b\", 'it''s', 1_000, 0xff FROM d.t; -- done")
    assert [word.text for word in words] == ["SELECT", 'a"b', ",", "it's", ",", "1000", ",", "255", "FROM", "d", ".",
                                             "t", ";"]  # fmt: skip
    assert [word.token_type for word in words[:4]] == [
        WordType.VAR, WordType.IDENTIFIER, WordType.SIGN, WordType.STRING,
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["select 'a", 'select "a', "select /* a /* b */", "select $$ a", "select E'a\\'"])
def test_what_is_not_closed_is_an_error_that_says_where(text: str):
    with pytest.raises(InvalidRequest, match=r"is not closed.*line 1"):
        words_of(text)
    assert not ends_statement(text + ";")


def test_statements_are_split_at_semicolons_that_are_no_part_of_a_text():
    text = "select 1; -- first; of two\n\n select ';', $$;$$ /* ; */ ;;  /* nothing; */ ; select \"a;b\"\n-- end;"
    assert split_statements(text) == [
        "select 1", "-- first; of two\n\n select ';', $$;$$ /* ; */", 'select "a;b"\n-- end;'
    ]  # fmt: skip
    assert split_statements(" ; -- nothing\n;") == []


def test_a_statement_ends_with_its_semicolon():
    assert ends_statement("select 1; -- done")
    assert not ends_statement("select 1")
    assert not ends_statement("-- nothing;")


def test_blanks_are_those_of_duckdb():
    with duckdb.connect() as connection:
        for blank in "\t\n\x0b\f\r\x1c\x1f \x85\xa0\u1680\u2000\u200a\u200b\u200c\u2028\u202f\u205f\u2060\u3000\ufeff":
            try:
                is_blank = connection.execute(f"select{blank}7").fetchall() == [(7,)]
            except duckdb.Error:
                is_blank = False
            assert ([word.text for word in words_of(f"select{blank}7")] == ["select", "7"]) == is_blank, hex(ord(blank))
