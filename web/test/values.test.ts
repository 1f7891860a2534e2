import { tableFromArrays, tableToIPC } from "@uwdata/flechette";
import { describe, expect, test } from "vitest";

import { Nested, rowsOf, type Value } from "../src/grid/arrow";
import { cellsOf } from "../src/grid/columns";
import { previewOf } from "../src/grid/cells";
import { decimalText, jsonOf, sqlOf, textOf } from "../src/grid/values";
import stored from "./types.json";

/** A row with a value of each type, as the service sent it (tests/page/test_units.py compares it with what it sends now). */
const block = rowsOf(Uint8Array.from(atob(stored.arrow), (character) => character.charCodeAt(0)));
const NAMES = stored.columns.map(([name]) => name);

const at = (name: string): { type: (typeof block.types)[number]; value: Value } => {
  const column = NAMES.indexOf(name);
  return { type: block.types[column]!, value: block.value(0, column) };
};
const text = (name: string): string => textOf(at(name).type, at(name).value);
const json = (name: string): string => jsonOf(at(name).type, at(name).value);
const sql = (name: string): string => sqlOf(at(name).type, at(name).value);

describe("values by type", () => {
  test.each([
    ["tinyint", "-128"],
    ["bigint", "9223372036854775807"],
    ["ubigint", "18446744073709551615"],
    ["hugeint", "170141183460469231731687303715884105727"],
    ["uhugeint", "340282366920938463463374607431768211455"],
    ["decimal", "-0.05"],
    ["decimal38", "12345678901234567890123456789.123456789"],
    ["double", "0.1"],
    ["nan", "NaN"],
    ["infinite", "-Infinity"],
    ["minus_zero", "-0"],
    ["float", "0.1"],
    ["boolean", "true"],
    ["date", "2024-02-29"],
    ["date_late", "+12026-01-31"],
    ["date_bc", "-0043-03-15"],
    ["date_infinite", "infinity"],
    ["time", "12:34:56.123456"],
    ["timestamp", "2024-01-01 12:00:00.123456"],
    ["timestamp_old", "1969-12-31 23:59:59.999999"],
    ["timestamp_infinite", "-infinity"],
    ["timestamptz", "2024-01-01 10:00:00Z"],
    ["timestamp_ns", "2024-01-01 00:00:00.123456789"],
    ["timestamp_s", "2024-01-01 00:00:00"],
    ["interval", "P1Y2M3DT4H5M6.789S"],
    ["interval_minus", "P-1DT-2H"],
    ["text", "é😀"],
    ["blob", "0x6100ff"],
    ["list", "[1, null, 3]"],
    ["struct", '{"a": 1, "b": [true]}'],
    ["map", '[["k", 1]]'],
    ["union", "7"],
  ])("%s is shown as %s", (name, shown) => expect(text(name)).toBe(shown));

  test.each([
    ["bigint", "9223372036854775807"],
    ["hugeint", "170141183460469231731687303715884105727"],
    ["decimal", '"-0.05"'],
    ["nan", '"NaN"'],
    ["timestamp", '"2024-01-01T12:00:00.123456"'],
    ["timestamptz", '"2024-01-01T10:00:00Z"'],
    ["blob", '"YQD/"'],
    ["nothing", "null"],
  ])("%s is %s in JSON", (name, shown) => expect(json(name)).toBe(shown));

  test.each([
    ["decimal", "-0.05"],
    ["text", "'é😀'"],
    ["date", "DATE '2024-02-29'"],
    ["struct", "{'a': 1, 'b': [TRUE]}"],
    ["map", "MAP {'k': 1}"],
    ["nan", "'NaN'::DOUBLE"],
    ["nothing", "NULL"],
  ])("%s is %s in SQL", (name, shown) => expect(sql(name)).toBe(shown));

  test("a nested value keeps its parts, with a field that is named like the prototype", () => {
    const found = at("prototype").value as Nested;
    expect(found.parts.map((part) => [part.label, part.value])).toEqual([["__proto__", 1], ["constructor", 2]]);
  });
});

test("columns of the same name are told apart by their place", () => {
  const column = NAMES.indexOf("same");
  expect([block.value(0, column), block.value(0, column + 1)]).toEqual([1, 2]);
});

test("a decimal keeps its digits, whatever its scale", () => {
  for (const scale of [0, 1, 9, 37]) {
    for (const value of [0n, 5n, -5n, 10n ** 37n + 1n, -(10n ** 37n) - 1n]) {
      const back = BigInt(decimalText(value, scale).replace(".", ""));
      expect(back).toBe(value);
    }
  }
  expect(decimalText(12n, -2)).toBe("1200");
});

test("a long text is cut for its cell, and shown on one line", () => {
  const { type } = at("text");
  expect(previewOf(type, "x".repeat(10_000_000))).toHaveLength(301);
  expect(previewOf(type, "a\r\nb\tc\u2028d")).toBe("a⏎b⇥c⏎d");
});

test("windows of several batches are one", () => {
  const bytes = tableToIPC(tableFromArrays({ n: [1, 2, 3, 4, 5] }, { maxBatchRows: 2 }), { format: "stream" })!;
  const rows = rowsOf(bytes);
  expect([0, 1, 2, 3, 4].map((row) => rows.value(row, 0))).toEqual([1, 2, 3, 4, 5]);
  expect(rows.length).toBe(5);
});

test("wide characters take two cells", () => expect(cellsOf("a漢😀")).toBe(5));
