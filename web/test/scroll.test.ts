import { describe, expect, test } from "vitest";

import { CANVAS, type Extent, lastTop, nativeOf, type Place, rolled, rowsIn, scrolled, settled, showing, topOf } from "../src/grid/scroll";
import { numbers } from "./random";

const SIZES = [1, 30, 1_000_000, 1_000_000_000];
const extents: Extent[] = SIZES.flatMap((rows) => [100, 413, 2_000].map((view) => ({ rows, rowHeight: 24, view })));
const named = extents.map((extent) => [`${extent.rows} rows in ${extent.view} px`, extent] as const);

/** The browser: its scrollbar keeps within its canvas, and to whole pixels. */
const clamp = (extent: Extent, native: number): number =>
  Math.round(Math.min(Math.max(native, 0), Math.max(Math.min(extent.rows * 24, CANVAS) - extent.view, 0)));

const wheel = (extent: Extent, place: Place, by: number): Place => scrolled(extent, place, clamp(extent, place.native + by));

const shows = (extent: Extent, place: Place, row: number): boolean => {
  const { first, end } = rowsIn(extent, place.top);
  return row >= first && row < end;
};

describe.each(named)("%s", (_, extent) => {
  const start = { top: 0, native: 0 };

  test("a wheel at the last row, and back at the first, reaches them", () => {
    let place = settled(extent, { top: Math.max(lastTop(extent) - 1_000, 0), native: 0 });
    for (let step = 0; step < 40; step += 1) place = wheel(extent, place, 100);
    expect(place.top).toBe(lastTop(extent));
    expect(shows(extent, place, extent.rows - 1)).toBe(true);
    place = settled(extent, { top: Math.min(1_000, lastTop(extent)), native: 0 });
    for (let step = 0; step < 40; step += 1) place = wheel(extent, place, -100);
    expect(place.top).toBe(0);
  });

  test("any row is shown whole by a key", () => {
    const random = numbers(7);
    let place: Place = start;
    for (const row of [0, extent.rows - 1, ...Array.from({ length: 200 }, () => Math.floor(random() * extent.rows))]) {
      place = showing(extent, place, row);
      expect(row * 24).toBeGreaterThanOrEqual(place.top);
      if (extent.view >= 24) expect(row * 24 + 24).toBeLessThanOrEqual(place.top + extent.view + 1e-6);
    }
  });

  test("a drag to a place of the scrollbar shows the same rows as the scrollbar's place of these rows", () => {
    const random = numbers(3);
    for (let step = 0; step < 200; step += 1) {
      const native = clamp(extent, random() * CANVAS);
      expect(nativeOf(extent, topOf(extent, native))).toBeCloseTo(native, 3);
    }
    expect(topOf(extent, clamp(extent, CANVAS))).toBe(lastTop(extent));
    expect(topOf(extent, 0)).toBe(0);
  });

  test("a drag further down shows later rows, never earlier ones", () => {
    let before = -1;
    for (let native = 0; native <= clamp(extent, CANVAS); native += Math.max(clamp(extent, CANVAS) / 500, 1)) {
      const top = topOf(extent, native);
      expect(top).toBeGreaterThanOrEqual(before);
      before = top;
    }
  });

  test("every row is reached from any other by a drag and a wheel", () => {
    const random = numbers(11);
    for (let step = 0; step < 60; step += 1) {
      const row = Math.floor(random() * extent.rows);
      const wanted = Math.min(row * 24, lastTop(extent));
      let place = scrolled(extent, start, clamp(extent, nativeOf(extent, wanted)));
      place = settled(extent, place);
      for (let turn = 0; turn < 2_000 && !shows(extent, place, row); turn += 1) {
        place = wheel(extent, place, Math.sign(wanted - place.top) * Math.min(100, Math.ceil(Math.abs(wanted - place.top))));
        if (turn % 7 === 0) place = settled(extent, place);
      }
      expect(shows(extent, place, row)).toBe(true);
    }
  });

  test("small scrolls, settled now and then, move the rows by just as many pixels", () => {
    const random = numbers(5);
    let place = settled(extent, { top: lastTop(extent) / 2, native: 0 });
    for (let step = 0; step < 500; step += 1) {
      const by = Math.round((random() - 0.5) * 400);
      const expected = Math.min(Math.max(place.top + by, 0), lastTop(extent));
      const next = wheel(extent, place, by);
      expect(Math.abs(next.top - expected)).toBeLessThanOrEqual(1);
      place = step % 10 === 0 ? settled(extent, next) : next;
      place = { ...place, native: clamp(extent, place.native) };
    }
  });
});

test("without rows nothing scrolls", () => {
  const extent = { rows: 0, rowHeight: 24, view: 300 };
  expect(rowsIn(extent, 0)).toEqual({ first: 0, end: 0, above: 0 });
  expect(scrolled(extent, { top: 0, native: 0 }, 0)).toEqual({ top: 0, native: 0 });
});

test("turns of a wheel that a busy browser added up move by just as many pixels", () => {
  const extent: Extent = { rows: 2_000_000, rowHeight: 24, view: 400 };
  const middle = settled(extent, { top: 24_000_000, native: 0 });
  expect(rolled(extent, middle, 14_400)?.top).toBe(24_014_400);
  expect(rolled(extent, middle, -14_400)?.top).toBe(23_985_600);
  expect(rolled(extent, middle, 1e12)?.top).toBe(lastTop(extent));
  expect(rolled(extent, { top: 0, native: 0 }, -5)).toEqual({ top: 0, native: 0 });
  expect(rolled({ ...extent, rows: 100 }, { top: 0, native: 0 }, 50)).toBeNull();
});
