import { columnFromArray, tableFromColumns, tableToIPC } from "@uwdata/flechette";
import { describe, expect, it } from "vitest";

import type { ScanPlan } from "../src/api/types";
import { Blocks } from "../src/blocks/answer";
import { cellAt, layoutOf, moved, nextOf, placeOf } from "../src/blocks/layout";
import { paintCells, stampsOf } from "../src/blocks/paint";
import { conditionOf } from "../src/blocks/source";
import { VERDICTS, colourOf, contrast, groundOf, stampOf } from "../src/blocks/verdicts";

const COUNTS = [1, 2, 7, 400, 401, 999, 50_000, 1_000_000];
const WIDTHS = [1, 7, 320, 1200, 2400];

describe("the layout", () => {
  it("has a place of its own for every cell, inside the map", () => {
    for (const count of COUNTS) {
      for (const width of WIDTHS) {
        const layout = layoutOf(count, width, 420);
        expect(layout.columns * layout.rows).toBeGreaterThanOrEqual(count);
        expect(layout.width).toBeLessThanOrEqual(Math.max(width, layout.size));
        for (const at of [0, 1, Math.floor(count / 2), count - 1].filter((one) => one < count)) {
          const { x, y } = placeOf(layout, at);
          expect(cellAt(layout, x, y)).toBe(at);
          expect(cellAt(layout, x + layout.size - 0.5, y + layout.size - 0.5)).toBe(at);
        }
      }
    }
  });

  it("has the largest cells that fit, and pixels where none do", () => {
    expect(layoutOf(20, 800, 400).size).toBe(22);
    expect(layoutOf(1_000_000, 800, 400)).toMatchObject({ size: 1, columns: 800, rows: 1250 });
    expect(layoutOf(0, 800, 400)).toMatchObject({ rows: 0, height: 0 });
  });

  it("knows no cell beside the map or after the last one", () => {
    const layout = layoutOf(10, 66, 400); // three columns
    expect(layout).toMatchObject({ columns: 3, rows: 4 });
    expect(cellAt(layout, -1, 5)).toBeNull();
    expect(cellAt(layout, 67, 5)).toBeNull();
    expect(cellAt(layout, 30, 70)).toBeNull();
    expect(cellAt(layout, 5, 1000)).toBeNull();
  });
});

describe("the keys", () => {
  const layout = layoutOf(10, 66, 400);

  it("reach every cell and leave the map nowhere", () => {
    const seen = new Set([0]);
    const queue = [0];
    const keys = ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "PageUp", "PageDown", "Home", "End"];
    while (queue.length > 0) {
      const from = queue.pop()!;
      for (const key of keys) {
        const to = moved(layout, from, key, false)!;
        expect(to).toBeGreaterThanOrEqual(0);
        expect(to).toBeLessThan(10);
        if (!seen.has(to)) queue.push(to);
        seen.add(to);
      }
    }
    expect(seen.size).toBe(10);
  });

  it("move by cells, rows and ends", () => {
    expect(moved(layout, 4, "ArrowRight", false)).toBe(5);
    expect(moved(layout, 4, "ArrowDown", false)).toBe(7);
    expect(moved(layout, 8, "ArrowDown", false)).toBe(8);
    expect(moved(layout, 4, "Home", false)).toBe(3);
    expect(moved(layout, 4, "End", true)).toBe(9);
    expect(moved(layout, 1, "PageDown", false)).toBe(7);
    expect(moved(layout, 4, "x", false)).toBeNull();
  });

  it("find the next cell of a verdict, going around", () => {
    const verdicts = Uint8Array.from([0, 3, 3, 0, 3]);
    expect(nextOf(verdicts, 0, 0, 1)).toBe(3);
    expect(nextOf(verdicts, 0, 3, 1)).toBe(0);
    expect(nextOf(verdicts, 3, 1, -1)).toBe(4);
    expect(nextOf(verdicts, 5, 1, 1)).toBeNull();
    expect(nextOf(verdicts, 0, -1, 1)).toBe(0);
  });
});

describe("the colours", () => {
  it("have a contrast of 3:1 to the ground of their theme", () => {
    for (const theme of ["light", "dark"] as const) {
      for (const verdict of VERDICTS) {
        expect(contrast(colourOf(verdict, theme), groundOf(theme)), `${verdict} ${theme}`).toBeGreaterThanOrEqual(3);
      }
    }
  });

  it("are not what alone tells two verdicts apart", () => {
    const shapes = VERDICTS.map((verdict) => {
      const { pixels } = stampOf(verdict, 20, "light");
      const first = new Map([...new Set(pixels)].map((colour, at) => [colour, at]));
      return [...pixels].map((pixel) => first.get(pixel)).join("");
    });
    expect(new Set(shapes).size).toBe(VERDICTS.length);
  });

  it("fill each cell with its verdict, and nothing else", () => {
    const layout = layoutOf(10, 66, 400);
    const verdicts = Uint8Array.from([0, 1, 2, 3, 4, 5, 6, 7, 8, 0]);
    const stamps = stampsOf(layout.size, "dark", null);
    const pixels = paintCells(layout, verdicts, stamps);
    verdicts.forEach((verdict, at) => {
      const { x, y } = placeOf(layout, at);
      for (let down = 0; down < layout.size; down += 1) {
        const begin = (y + down) * layout.width + x;
        const line = pixels.subarray(begin, begin + layout.size);
        expect([...line]).toEqual([...stamps[verdict]!.pixels.subarray(down * layout.size, (down + 1) * layout.size)]);
      }
    });
    expect(pixels[pixels.length - 1]).toBe(0);
  });

  it("of pixels are those of the verdicts, pale where another one is looked for", () => {
    const layout = layoutOf(500_000, 100, 400);
    const verdicts = new Uint8Array(500_000).map((_, at) => at % 9);
    const stamps = stampsOf(1, "light", null);
    const pixels = paintCells(layout, verdicts, stamps);
    expect(pixels[123_456]).toBe(stamps[123_456 % 9]!.pixels[0]);
    const pale = paintCells(layout, verdicts, stampsOf(1, "light", 3));
    expect(pale[3]).toBe(pixels[3]);
    expect(pale[4]).not.toBe(pixels[4]);
  });
});

const STEPS = [
  { level: "file", predicate: "id > 3", reason: "by range", files: 1, blocks: 1, data_bytes: 5 },
  { level: "deleted", predicate: "", reason: "since all their rows are deleted", files: 0, blocks: 1, data_bytes: 5 },
];

function answer(columns: Record<string, unknown[]>): Uint8Array {
  const arrays = Object.entries(columns).map(([name, values]) => [name, columnFromArray(values)] as const);
  const table = tableFromColumns(arrays as never);
  const facts = { table: "a.b", version: 4, column: "id", steps: STEPS, block_count: 3 };
  table.schema.metadata = new Map([["underlay", JSON.stringify(facts)]]);
  return tableToIPC(table, { format: "stream" })!;
}

describe("the service's answer", () => {
  const blocks = new Blocks(
    answer({
      file: ["a", "a", '<b>"x"</b>'],
      block: [0, 1, 0],
      rows: [1000, 1000, 5],
      bytes: [10, 20, 30],
      verdict: [0, 6, 4],
      step: [null, 1, 0],
      min: [1, null, 7],
      max: [2, null, 9],
    }),
  );

  it("says of each cell where it is, what became of it, and why", () => {
    expect(blocks.cell(0)).toMatchObject({ verdict: "read", title: "a, block 0", reason: null });
    expect(blocks.cell(2)).toMatchObject({ verdict: "file", reason: { condition: "id > 3", why: "by range" } });
    expect(blocks.cell(2).title).toBe('<b>"x"</b>, block 0');
    expect(blocks.cell(1).reason).toEqual({ condition: "", why: "since all their rows are deleted" });
    expect(blocks.cell(0).facts).toContainEqual(["Rows", "1,000"]);
    expect(blocks.cell(1).facts).toContainEqual(["id", "unknown … unknown"]);
  });

  it("counts blocks by verdict", () => {
    expect(blocks.counts()).toEqual([1, 0, 0, 0, 1, 0, 1, 0, 0]);
  });

  it("of bins shows what is read, then the most frequent verdict, and counts all", () => {
    const none = [0, 0, 0];
    const binned = new Blocks(
      answer({
        first: [0, 10, 20],
        blocks: [10, 10, 5],
        rows: [1, 1, 1],
        bytes: [1, 1, 1],
        read: [1, 0, 0],
        read_whole: none,
        segment: none,
        partition: [9, 4, 5],
        file: [0, 6, 0],
        block: none,
        deleted: none,
        bloom: none,
      }),
    );
    expect([...binned.verdicts]).toEqual([0, 4, 3]);
    expect(binned.counts()).toEqual([1, 0, 0, 18, 6, 0, 0, 0, 0]);
    expect(binned.cell(1).title).toBe("Blocks 10 to 19");
    expect(binned.cell(1).facts).toContainEqual(["Dropped with its file", "6"]);
  });
});

describe("the condition of a scan", () => {
  const plan = (predicate: string | null): ScanPlan => ({ predicate }) as ScanPlan;

  it("is none where everything is read", () => {
    expect([null, "", "TRUE", "true"].map((one) => conditionOf(plan(one)))).toEqual([null, null, null, null]);
    expect(conditionOf(plan("id > 3"))).toBe("id > 3");
  });
});
