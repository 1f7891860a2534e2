from __future__ import annotations

from tests.local.statements.lakes import small_lake


def test_describe_has_nulls_key_defaults_and_comments():
    lake = small_lake()
    lake.sql("create table t.t (a bigint not null primary key comment 'the key', b varchar default 'x', c int[])")
    expected = [
        ("a", "BIGINT", "NO", "PRI", None, "the key"),
        ("b", "VARCHAR", "YES", None, "x", None),
        ("c", "INTEGER[]", "YES", None, None, None),
    ]
    assert lake.sql("describe t.t").fetchall() == expected
    assert lake.sql('DESC "T".t;').fetchall() == expected
    lake.sql("alter table t.t drop column c")
    assert lake.sql("describe t.t version as of 0").fetchall() == expected
    assert lake.sql("describe t.t").fetchall() == expected[:2]
    assert [row[:3] for row in lake.sql("describe select a from t.t").fetchall()] == [("a", "BIGINT", "YES")]
