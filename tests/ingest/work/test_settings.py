from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from underlay.errors import InvalidRequest
from underlay.ingest.rows.reading import Dialect
from underlay.ingest.source.file_format import FileFormat
from underlay.ingest.work.settings import Options, Settings, Threshold, make_settings


def test_the_keywords_of_an_ingest_are_the_fields_of_its_settings():
    assert Options.__annotations__.keys() == {one.name for one in fields(Settings)} - {"sources"}


def test_keywords_are_taken_in_forms_that_are_easy_to_write():
    made = make_settings(
        [Path("a.csv"), "b.csv"], kind="CSV", max_rejected="5%", dialect={"delimiter": ";", "nulls": ["NA"]}
    )
    assert made.sources == ("a.csv", "b.csv")
    assert (made.kind, made.max_rejected) == (FileFormat.CSV, Threshold(fraction=0.05))
    assert made.dialect == Dialect(delimiter=";", nulls=("NA",))
    assert make_settings("a.csv", dialect={"nulls": "NA"}).dialect.nulls == ("NA",)


def test_settings_may_be_given_instead_of_sources():
    made = make_settings("a.csv", changed="skip")
    assert make_settings(made) == made
    assert make_settings(made, max_rejected=7) == make_settings("a.csv", changed="skip", max_rejected=7)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"dialect": {"delimeter": ";"}}, "not a dialect of CSV .*some of delimiter, quote, has_header, nulls"),
        ({"dialect": ";"}, "not a dialect of CSV"),
        ({"dialect": {"delimiter": ";;"}}, "the delimiter of CSV must be one ASCII character"),
        ({"kind": "xlsx"}, "not a format of sources .*expected csv, tsv, json, parquet, arrow, found xlsx"),
        ({"changed": "perhaps"}, "not a value of changed .*expected error, skip, replace"),
        ({"new_columns": "perhaps"}, "not a value of new_columns .*expected error, ignore, add"),
        ({"max_rejected": "many"}, "not a limit for rejected rows"),
        ({"batch_sources": 0}, "at least one source"),
    ],
)
def test_values_that_make_no_sense_are_refused(options: dict, problem: str):
    with pytest.raises(InvalidRequest, match=problem):
        make_settings("a.csv", **options)


def test_credentials_are_not_shown():
    assert "hush" not in repr(make_settings("s3://a/b.csv", store_options={"secret_access_key": "hush"}))
