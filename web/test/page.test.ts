import { describe, expect, test } from "vitest";

import { rowsOf } from "../src/grid/arrow";
import { Columns } from "../src/grid/columns";
import { everything, moved, rangeOf, single } from "../src/grid/selection";
import { Windows, windowRows } from "../src/grid/windows";
import { copied } from "../src/results/copy";
import { Summing } from "../src/results/summary";
import { found } from "../src/state/history";
import { doubled, keyText } from "../src/state/keys";
import { linkedIn, linkTo } from "../src/state/link";
import { tabsIn } from "../src/state/tabFiles";
import { bytesText, durationText } from "../src/theme/text";
import stored from "./types.json";

const block = rowsOf(Uint8Array.from(atob(stored.arrow), (character) => character.charCodeAt(0)));
const NAMES = stored.columns.map(([name]) => name);
const typeOf = (name: string): (typeof block.types)[number] => block.types[NAMES.indexOf(name)]!;

describe("copies", () => {
  const rows = {
    names: ["a", "A", "t\t|"],
    types: [typeOf("bigint"), typeOf("decimal"), typeOf("text")],
    rows: [
      [9007199254740993n, -5n, "NULL"],
      [null, 1250n, ""],
      [null, null, null],
      [1n, 0n, 'x"\t,\n|'],
    ],
  };

  test("null, empty and the text NULL differ in TSV and CSV", () => {
    expect(copied("tsv", rows)).toBe('a\tA\t"t\t|"\n9007199254740993\t-0.05\tNULL\n\t12.50\t""\n\t\t\n1\t0.00\t"x""\t,\n|"');
    expect(copied("csv", rows).split("\n")[2]).toBe(',12.50,""');
    expect(copied("cells", { ...rows, names: ["a"], types: rows.types.slice(0, 1), rows: [[7n]] })).toBe("7");
  });

  test("JSON keeps all digits, and both columns of a name", () => {
    expect(copied("json", rows).split("\n")[1]).toBe('  {"a": 9007199254740993, "A_2": "-0.05", "t\\t|": "NULL"},');
    expect(copied("json", rows).split("\n")[2]).toBe('  {"a": null, "A_2": "12.50", "t\\t|": ""},');
  });

  test("Markdown and INSERT escape what they must", () => {
    expect(copied("markdown", rows).split("\n").slice(0, 4)).toEqual([
      "| a | A | t\t\\| |",
      "| ---: | ---: | --- |",
      "| 9007199254740993 | -0.05 | NULL |",
      "| *NULL* | 12.50 |  |",
    ]);
    expect(copied("insert", rows)).toContain(`("a", "A_2", "t\t|") VALUES\n  (9007199254740993, -0.05, 'NULL'),\n  (NULL, 12.50, ''),`);
  });
});

describe("summaries", () => {
  test("whole numbers and decimals of other scales are added exactly", () => {
    const summing = new Summing([typeOf("bigint"), typeOf("decimal")]);
    summing.add(9223372036854775807n, 0);
    summing.add(-5n, 1);
    summing.add(null, 1);
    expect(summing.summary()).toEqual({ cells: 3, nulls: 1, sum: "9223372036854775806.95", least: "-0.05", greatest: "9223372036854775807" });
  });

  test("times have a least and a greatest, texts have none", () => {
    const times = new Summing([typeOf("timestamp")]);
    times.add(0n, 0);
    times.add(-1n, 0);
    expect(times.summary()).toMatchObject({ sum: null, least: "1969-12-31 23:59:59.999999", greatest: "1970-01-01 00:00:00" });
    const mixed = new Summing([typeOf("bigint"), typeOf("text")]);
    mixed.add(1n, 0);
    mixed.add("x", 1);
    expect(mixed.summary()).toMatchObject({ cells: 2, sum: null, least: null });
  });

  test("floats beside decimals, and not a number", () => {
    const summing = new Summing([typeOf("double"), typeOf("decimal")]);
    summing.add(0.5, 0);
    summing.add(Number.NaN, 0);
    summing.add(25n, 1);
    expect(summing.summary()).toMatchObject({ sum: "NaN", least: "0.25", greatest: "0.5" });
  });
});

describe("windows", () => {
  const rows = { length: 1_000, types: [], value: () => 1 } as never;
  const settle = (): Promise<void> => new Promise((resolve) => setTimeout(resolve));

  test("large rows make small windows", () => {
    expect(windowRows(2_000_000, 32_000_000)).toBe(1_000);
    expect(windowRows(5, 50_000_000)).toBe(1);
    expect(windowRows(0, 0)).toBe(1_000);
  });

  test("each window is asked for once, what was scrolled past is aborted, and the oldest is dropped", async () => {
    const asked: number[] = [];
    const aborted: number[] = [];
    const windows = new Windows(
      1_000_000,
      10_000_000,
      (offset, _, signal) => {
        asked.push(offset);
        return new Promise((resolve, reject) => {
          signal.onabort = () => {
            aborted.push(offset);
            reject(new DOMException("", "AbortError"));
          };
          if (offset !== 500_000) resolve(rows);
        });
      },
      () => undefined,
      () => expect.unreachable(),
    );
    windows.want(0, 50);
    windows.want(0, 50);
    await settle();
    expect(windows.find(49)?.at).toBe(49);
    windows.want(500_000, 500_050);
    windows.want(900_990, 901_010);
    await settle();
    expect(asked).toEqual([0, 500_000, 900_000, 901_000]);
    expect(aborted).toEqual([500_000]);
    for (let row = 0; row < 100_000; row += 1_000) {
      windows.want(row, row + 1);
      await settle();
    }
    expect(windows.find(99_000)).toBeDefined();
    expect(windows.find(900_990)).toBeUndefined();
  });
});

describe("the grid", () => {
  const size = { rows: 100, columns: 10 };
  test("keys move the focus by ARIA's pattern", () => {
    const at = { row: 5, column: 5 };
    expect(moved(at, "ArrowUp", false, 20, size)).toEqual({ row: 4, column: 5 });
    expect(moved(at, "End", true, 20, size)).toEqual({ row: 99, column: 9 });
    expect(moved(at, "Home", true, 20, size)).toEqual({ row: 0, column: 0 });
    expect(moved({ row: 0, column: 0 }, "ArrowUp", false, 20, size)).toEqual({ row: -1, column: 0 });
    expect(moved(at, "PageDown", false, 200, size)).toEqual({ row: 99, column: 5 });
    expect(moved(at, "x", false, 20, size)).toBeNull();
  });

  test("a range is the same from either corner", () => {
    const one = rangeOf({ anchor: { row: 3, column: 4 }, focus: { row: 1, column: 2 } });
    expect(one).toEqual({ firstRow: 1, endRow: 4, firstColumn: 2, endColumn: 5 });
    expect(rangeOf(everything(size))).toEqual({ firstRow: 0, endRow: 100, firstColumn: 0, endColumn: 10 });
    expect(rangeOf(single({ row: -1, column: 0 }))).toMatchObject({ firstRow: 0, endRow: 0 });
  });

  test("of 300 columns only those in sight are drawn, and frozen ones leave room for others", () => {
    const columns = new Columns({ widths: Array(300).fill(100) as number[], frozen: 2 }, 50);
    expect(columns.seen(0, 1_000)).toEqual({ first: 2, end: 10 });
    expect(columns.seen(10_000, 1_000)).toEqual({ first: 102, end: 110 });
    expect(columns.leftFor(299, 0, 1_000)).toBe(29_050);
    expect(columns.leftFor(2, 29_050, 1_000)).toBe(0);
    expect(columns.frozenIn(300)).toBe(1);
  });
});

describe("what the browser keeps", () => {
  test("a link carries any text in its fragment", () => {
    const sql = "select '#&=%\n😀' -- ü";
    const link = linkTo("https://x.example/p/?a=1#old", { sql, title: "T", engine: "spark", asOf: "2024-01-01T00:00:00.000Z" });
    expect(new URL(link).search).toBe("?a=1");
    expect(linkedIn(new URL(link).hash)).toEqual({ sql, title: "T", engine: "spark", asOf: "2024-01-01T00:00:00.000Z" });
    expect(linkedIn("#other=1")).toBeNull();
    expect(linkedIn("#sql=1&engine=rm&as_of=never")).toEqual({ sql: "1" });
  });

  test("a file of tabs is read, anything else is refused, and wrong values are left out", () => {
    expect(tabsIn('{"format":"underlay-tabs","tabs":[{"title":1,"text":"select 1","engine":"x","parameters":{"a":{"text":"1"}}},7]}')).toEqual([
      { kind: "sql", text: "select 1", parameters: { a: { text: "1" } } },
    ]);
    expect(tabsIn('{"tabs":[]}')).toBeNull();
    expect(tabsIn("select 1")).toBeNull();
  });

  test("the history is searched by words", () => {
    const past = { id: "1", at: 0, sql: "SELECT fare FROM trips", state: "failed", milliseconds: 1, rows: 0, engine: "", error: "no fair", asOf: null } as const;
    expect(found([past], "trips fair")).toHaveLength(1);
    expect(found([past], "trips zone")).toHaveLength(0);
  });

  test("keys read the same on every keyboard", () => {
    const pressed = { key: "Enter", code: "Enter", ctrlKey: false, metaKey: false, altKey: false, shiftKey: false };
    expect(keyText({ ...pressed, metaKey: true, shiftKey: true })).toBe("Mod+Shift+Enter");
    expect(keyText({ ...pressed, key: "†", code: "KeyT", altKey: true })).toBe("Alt+T");
    expect(keyText({ ...pressed, key: "¡", code: "Digit1", altKey: true })).toBe("Alt+1");
    expect(keyText({ ...pressed, key: "?", code: "Slash", shiftKey: true })).toBe("?");
    expect(keyText({ ...pressed, key: "Shift", shiftKey: true })).toBe("");
    expect(doubled({ a: "F1", b: "F1", c: "F2", d: "", e: "" })).toEqual(new Set(["a", "b"]));
  });
});

test("sizes and times for people", () => {
  expect([0, 999, 1_000, 999_499, 1_234_567, 5e12].map(bytesText)).toEqual(["0 B", "999 B", "1.0 kB", "999 kB", "1.2 MB", "5.0 TB"]);
  expect([0.4, 999.4, 999.6, 3_100, 59_960, 61_000, 3_725_000].map(durationText)).toEqual([
    "0 ms",
    "999 ms",
    "1.00 s",
    "3.10 s",
    "1:00 min",
    "1:01 min",
    "1:02 h",
  ]);
});
