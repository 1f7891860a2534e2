import { describe, expect, it } from "vitest";

import { countsText, objectsOf, pairsOf, plainName } from "../src/catalog/rows";
import { momentText, quotedName, quotedTable, selectText, shareText, signedBytes, signedText, sinceText } from "../src/catalog/text";
import { rowsOf, stepOf, typedAhead } from "../src/catalog/tree";

const TABLES = ["shop.odd", "shop.orders", "taxi.trips"].map((name) => ({ name, is_writable: false }));
const COLUMNS = new Map([["taxi.trips", [{ name: "id", type: "bigint" }, { name: "Zone", type: "string" }]]]);

const labels = (open: string[], search = ""): string[] =>
  rowsOf(TABLES, COLUMNS, new Set(open), search).map((row) => `${row.level} ${row.label}`);

describe("the tree", () => {
  it("shows what is below open rows", () => {
    expect(labels([])).toEqual(["1 shop", "1 taxi"]);
    expect(labels(["taxi", "taxi.trips"])).toEqual(["1 shop", "1 taxi", "2 trips", "3 id", "3 Zone"]);
    expect(labels(["shop", "shop.odd"])).toEqual(["1 shop", "2 odd", "3 Loading…", "2 orders", "1 taxi"]);
  });

  it("finds tables and columns, with what leads to them", () => {
    expect(labels([], "ord")).toEqual(["1 shop", "2 orders"]);
    expect(labels([], "zone")).toEqual(["1 taxi", "2 trips", "3 Zone"]);
    expect(labels([], "nothing")).toEqual([]);
  });

  it("tells places and sizes to screen readers", () => {
    const [, , trips, , zone] = rowsOf(TABLES, COLUMNS, new Set(["taxi", "taxi.trips"]), "");
    expect([trips?.place, trips?.size, zone?.place, zone?.size]).toEqual([1, 1, 2, 2]);
  });

  it("is walked by ARIA's keys", () => {
    const rows = rowsOf(TABLES, COLUMNS, new Set(["taxi", "taxi.trips"]), "");
    expect(stepOf(rows, 0, "ArrowDown")).toEqual({ to: 1 });
    expect(stepOf(rows, 0, "ArrowRight")).toEqual({ open: "shop" });
    expect(stepOf(rows, 1, "ArrowRight")).toEqual({ to: 2 });
    expect(stepOf(rows, 4, "ArrowLeft")).toEqual({ to: 2 });
    expect(stepOf(rows, 2, "ArrowLeft")).toEqual({ close: "taxi.trips" });
    expect(stepOf(rows, 4, "ArrowDown")).toBeNull();
    expect(stepOf(rows, 0, "End")).toEqual({ to: 4 });
    expect(stepOf(rows, 3, "ArrowRight")).toBeNull();
    expect(typedAhead(rows, 0, "t")).toBe(1);
    expect(typedAhead(rows, 1, "t")).toBe(2);
    expect(typedAhead(rows, 1, "tr")).toBe(2);
    expect(typedAhead(rows, 0, "x")).toBeNull();
  });
});

describe("names in SQL", () => {
  it("are in quotes where they need them", () => {
    const names = ["zone", "Zone", "select", "a b", 'a"b', "1a", "straße", ""];
    const quoted = ["zone", "Zone", '"select"', '"a b"', '"a""b"', '"1a"', '"straße"', '""'];
    expect(names.map(quotedName)).toEqual(quoted);
    expect(quotedTable("taxi.2024-trips")).toBe('taxi."2024-trips"');
    expect(selectText("taxi.trips", 7)).toBe("SELECT *\nFROM taxi.trips VERSION AS OF 7\nLIMIT 1000");
    expect(selectText("taxi.trips", null)).not.toContain("VERSION");
  });

  it("of metadata are shown as people gave them", () => {
    const paths = ['"a ""b"" c"', "plain", '"a"."b"', 'a."b"'];
    expect(paths.map(plainName)).toEqual(['a "b" c', "plain", '"a"."b"', 'a."b"']);
  });
});

describe("numbers", () => {
  it("are never nothing of something, nor all of less", () => {
    const pairs = [[0, 0], [0, 5], [5, 5], [1, 1e6], [999_999, 1e6], [1, 3]];
    const texts = ["0 %", "0 %", "100 %", "< 0.1 %", "> 99.9 %", "33 %"];
    expect(pairs.map(([one, all]) => shareText(one!, all!))).toEqual(texts);
    expect([5000, -1200, 0].map(signedBytes)).toEqual(["+5.0 kB", "−1.2 kB", "0 B"]);
    expect([5, -1200, 0].map(signedText)).toEqual(["+5", "−1,200", "0"]);
  });
});

describe("times", () => {
  it("are told as they are, and from now", () => {
    expect(sinceText(new Date(Date.now() - 10 * 86_400_000).toISOString())).toMatch(/^10 d/);
    expect(sinceText("nothing")).toBe("");
    expect(momentText("2026-11-19T11:57:00.123456+00:00")).toBe("2026-11-19 11:57:00 UTC");
  });
});

describe("answers", () => {
  it("become objects, and maps pairs", () => {
    expect(objectsOf({ columns: [{ name: "a", type: "" }], rows: [[1]], row_count: 1 })).toEqual([{ a: 1 }]);
    expect(pairsOf([["a", 1]])).toEqual([["a", 1]]);
    expect(pairsOf(null)).toEqual([]);
    const counts = [["files_added", 1], ["rows_added", 6000], ["rows_deleted", 0]];
    expect(countsText(counts)).toEqual(["1 file added", "6,000 rows added"]);
  });
});
