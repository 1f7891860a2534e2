import { describe, expect, it } from "vitest";

import type { Column, Rows } from "../src/api/types";
import { type ChartChoice, KINDS, asKind, chooseChart } from "../src/charts/choose";
import { type Points, drawBins, drawRows, histogram, mostFrequent, niceBins } from "../src/charts/series";
import { placeText, summaryOf, tableOf } from "../src/charts/words";

const column = (name: string, type: string): Column => ({ name, type });
const AT = column("at", "timestamp(us)");
const FARE = column("fare", "decimal(9,2)");
const KM = column("km", "double");
const ZONE = column("zone", "string");
const LIST = column("list", "list<int>");

describe("the chart of some columns", () => {
  it("is lines over time, one for each value of a text", () => {
    expect(chooseChart([AT, FARE, KM])).toEqual({ kind: "line", x: 0, y: [1, 2], series: null });
    expect(chooseChart([FARE, ZONE, AT, KM])).toEqual({ kind: "line", x: 2, y: [0], series: 1 });
  });

  it("is bars of a text and a number, or of the rows of each text", () => {
    expect(chooseChart([ZONE, FARE])).toEqual({ kind: "bar", x: 0, y: [1], series: null });
    expect(chooseChart([LIST, ZONE])).toEqual({ kind: "bar", x: 1, y: [], series: null });
  });

  it("is points of two numbers, and a histogram of one number or time", () => {
    expect(chooseChart([FARE, KM])).toEqual({ kind: "scatter", x: 0, y: [1], series: null });
    expect(chooseChart([LIST, KM])).toEqual({ kind: "histogram", x: 1, y: [], series: null });
    expect(chooseChart([AT])).toEqual({ kind: "histogram", x: 0, y: [], series: null });
    expect(chooseChart([LIST])).toBeNull();
    expect(chooseChart([])).toBeNull();
  });

  it("shows numbers that tell something before those that are names of rows", () => {
    expect(chooseChart([AT, column("id", "bigint"), FARE])?.y).toEqual([2]);
    expect(chooseChart([AT, column("zone_id", "bigint")])?.y).toEqual([1]);
    expect(chooseChart([column("id", "bigint"), KM])).toMatchObject({ kind: "scatter", x: 0, y: [1] });
  });

  it("becomes another kind with columns that fit, or not at all", () => {
    const columns = [AT, ZONE, FARE, KM];
    for (const from of KINDS) {
      const first = asKind({ kind: from, x: 0, y: [2], series: null }, from, columns)!;
      for (const to of KINDS) {
        const next = asKind(first, to, columns)!;
        expect(next.kind).toBe(to);
        expect(next.y.length).toBeLessThanOrEqual(to === "histogram" ? 0 : 4);
        expect(next.y).not.toContain(next.x);
      }
    }
    expect(asKind({ kind: "bar", x: 0, y: [], series: null }, "line", [ZONE])).toBeNull();
    expect(asKind({ kind: "histogram", x: 0, y: [], series: null }, "scatter", [AT])).toBeNull();
  });
});

const points = (given: Partial<Points>): Points => ({ x: [], labels: [], y: [], series: null, ...given });

describe("few rows", () => {
  it("are lines in the order of x, with gaps where a line has no value", () => {
    const choice: ChartChoice = { kind: "line", x: 0, y: [1], series: 2 };
    const drawn = drawRows(
      choice,
      [AT, FARE, ZONE],
      points({ x: [3, 1, 2, null], y: [[30, 10, NaN, 5]], series: ["a", "b", "a", "a"] }),
    );
    expect(drawn).toMatchObject({
      x: [1, 2, 3],
      lines: [
        { label: "a", values: [null, null, 30] },
        { label: "b", values: [10, null, null] },
      ],
    });
  });

  it("tell null, the empty text and the text NULL apart", () => {
    const choice: ChartChoice = { kind: "line", x: 0, y: [1], series: 2 };
    const drawn = drawRows(choice, [AT, FARE, ZONE], points({ x: [1, 2, 3], y: [[1, 2, 3]], series: ["", "NULL", null] }));
    if (drawn.kind !== "line") throw new Error(drawn.kind);
    expect(drawn.lines.map((line) => line.values.filter((one) => one !== null))).toEqual([[1], [2], [3]]);
  });

  it("keep the most frequent series", () => {
    const many = Array.from({ length: 40 }, (_, at) => `s${at % 30}`);
    expect(mostFrequent(many)).toHaveLength(20);
    expect(mostFrequent(many)).toContain("s3");
  });

  it("are bars of sums, the largest first, at most fifty", () => {
    const choice: ChartChoice = { kind: "bar", x: 0, y: [1], series: null };
    const drawn = drawRows(choice, [ZONE, FARE], points({ labels: ["a", "b", "a", null], y: [[1, 5, 3, null]] }));
    expect(drawn).toMatchObject({ labels: ["b", "a", null], values: [5, 4, null] });
    expect(drawn.note).toContain("sum of fare");
    const many = Array.from({ length: 60 }, (_, at) => at);
    const cut = drawRows(choice, [ZONE, FARE], points({ labels: many.map(String), y: [many] }));
    expect(cut.kind === "bar" && cut.labels).toHaveLength(50);
    expect(cut.note).toContain("50 largest of 60");
  });

  it("are points with both values", () => {
    const choice: ChartChoice = { kind: "scatter", x: 0, y: [1], series: null };
    const drawn = drawRows(choice, [FARE, KM], points({ x: [3, 1, null, Infinity], y: [[1, 2, 3, 4]] }));
    expect(drawn).toMatchObject({ x: [1, 3], y: [2, 1] });
    expect(drawn.note).toContain("2 rows");
  });
});

describe("a histogram", () => {
  it("counts every value once, in bins of a round width", () => {
    const values = Array.from({ length: 1000 }, (_, at) => at);
    const drawn = histogram(values, 1003, "bigint");
    if (drawn.kind !== "histogram") throw new Error(drawn.kind);
    expect(drawn.width).toBe(50);
    expect(drawn.counts.reduce((sum, one) => sum + one, 0)).toBe(1000);
    expect(drawn.note).toContain("3 rows");
  });

  it("of anything has the least and the greatest value inside", () => {
    const spans: [number, number, string][] = [
      [0, 0, "double"],
      [5, 5, "bigint"],
      [-3, 8, "int"],
      [0.1, 0.1000001, "double"],
      [-1.7e308, 1.7e308, "double"],
      [2 ** 53, 2 ** 53 + 2, "bigint"],
      [1.7e9, 1.8e9, "timestamp(us)"],
      [0, 86_400, "date"],
      [5e-324, 1e-323, "double"],
    ];
    for (const [least, greatest, type] of spans) {
      const { low, width, bins } = niceBins(least, greatest, 40, type);
      expect(low).toBeLessThanOrEqual(least);
      expect(width).toBeGreaterThan(0);
      expect(bins).toBeLessThanOrEqual(41);
      expect(low / 2 + (bins / 2) * width).toBeGreaterThanOrEqual(greatest / 2);
    }
    expect(niceBins(0, 3 * 86_400, 40, "date").width).toBe(86_400);
    expect(niceBins(0, 86_400, 40, "timestamp(us)").width).toBe(3600);
  });
});

const rows = (names: string[], found: unknown[][], facts: object): Rows => ({
  columns: names.map((name) => column(name, "")),
  rows: found,
  row_count: found.length,
  ...facts,
});

describe("the service's bins", () => {
  it("are lines of means within bands", () => {
    const found = rows(
      ["series", "bin", "count", "min0", "max0", "avg0"],
      [
        ["a", 0, 5, 1, 3, 2],
        ["a", 2, 5, 4, 6, 5],
        ["b", 2, 1, 9, 9, 9],
      ],
      { low: 100, width: 10, bins: 3, total: 20_000, series: 2, left_out: 1 },
    );
    const drawn = drawBins({ kind: "line", x: 0, y: [1], series: 2 }, [AT, FARE, ZONE], found);
    expect(drawn).toMatchObject({
      x: [105, 125],
      lines: [
        { label: "a", values: [2, 5], low: [1, 4], high: [3, 6] },
        { label: "b", values: [null, 9] },
      ],
    });
    expect(drawn.note).toContain("1 row without");
  });

  it("are a histogram with its empty bins, bars, and cells of points", () => {
    const counted = rows(["bin", "count"], [[0, 7], [2, 3]], { low: 0, width: 5, bins: 4, total: 10 });
    const histogramOf: ChartChoice = { kind: "histogram", x: 0, y: [], series: null };
    expect(drawBins(histogramOf, [KM], counted)).toMatchObject({ counts: [7, 0, 3, 0] });
    const bars = rows(["category", "count", "sum0"], [[null, 2, 8.5], ["", 1, null]], { categories: 99, total: 3 });
    expect(drawBins({ kind: "bar", x: 0, y: [1], series: null }, [ZONE, FARE], bars)).toMatchObject({
      labels: [null, ""],
      values: [8.5, null],
    });
    const facts = { low: 0, width: 2, low_y: 10, width_y: 4, bins: 2, total: 4 };
    const cells = rows(["bin", "bin_y", "count"], [[0, 1, 4]], facts);
    expect(drawBins({ kind: "scatter", x: 0, y: [1], series: null }, [FARE, KM], cells)).toMatchObject({
      cells: { x: [1], y: [16], counts: [4] },
    });
  });
});

describe("the words", () => {
  it("say what is drawn and list its numbers", () => {
    const choice: ChartChoice = { kind: "bar", x: 0, y: [1], series: null };
    const drawn = drawRows(choice, [ZONE, FARE], points({ labels: ["<i>", null], y: [[2, 1]] }));
    expect(summaryOf(choice, [ZONE, FARE], drawn)).toBe("2 bars of fare by zone, the largest <i> with 2.");
    expect(tableOf(choice, [ZONE, FARE], drawn)).toEqual({
      head: ["zone", "fare"],
      rows: [["<i>", "2"], ["NULL", "1"]],
      more: 0,
    });
  });

  it("say times as ISO does", () => {
    expect(placeText(1_704_067_200, "date")).toBe("2024-01-01");
    expect(placeText(1_704_067_261, "timestamp(us)")).toBe("2024-01-01 00:01:01");
    expect(placeText(1e20, "timestamp(us)")).toBe("100,000,000,000,000,000,000");
    expect(placeText(0.5, "double")).toBe("0.5");
  });

  it("exist for charts without a value", () => {
    for (const kind of KINDS) {
      const choice: ChartChoice = { kind, x: 0, y: kind === "histogram" ? [] : [1], series: null };
      const drawn = drawRows(choice, [KM, FARE], points({ y: kind === "histogram" ? [] : [[]] }));
      expect(summaryOf(choice, [KM, FARE], drawn)).toMatch(/^No /);
    }
  });
});
