/** What a chart draws, from the rows themselves while there are few of them, or from bins that the service counted. */

import type { Column, Rows } from "../api/types";
import { plural } from "../theme/text";
import type { ChartChoice } from "./choose";

/** Beyond as many rows, the service counts them into bins. */
export const MOST_POINTS = 10_000;
export const MOST_SERIES = 20;
export const MOST_BARS = 50;
const HISTOGRAM_BINS = 40;

/** Lines: over the same places, null where a line has no value. `low` and `high` are a bin's least and greatest. */
export interface Line {
  label: string;
  values: (number | null)[];
  low?: (number | null)[];
  high?: (number | null)[];
}

export type Drawn =
  | { kind: "line"; x: number[]; lines: Line[]; note: string | null }
  | { kind: "scatter"; x: number[]; y: number[]; note: string | null }
  | { kind: "density"; cells: Density; note: string | null }
  | { kind: "histogram"; low: number; width: number; counts: number[]; note: string | null }
  | { kind: "bar"; labels: (string | null)[]; values: (number | null)[]; note: string | null };

/** Points counted in two directions. */
export interface Density {
  x: number[];
  y: number[];
  counts: number[];
  width: number;
  height: number;
}

/** Some rows as numbers and texts: a value for each column of the choice. */
export interface Points {
  x: (number | string | null)[];
  /** The x as text, for bars. */
  labels: (string | null)[];
  y: (number | null)[][];
  series: (string | null)[] | null;
}

const isFinite = (value: unknown): value is number => typeof value === "number" && Number.isFinite(value);

export function drawRows(choice: ChartChoice, columns: Column[], points: Points): Drawn {
  switch (choice.kind) {
    case "line":
      return lines(choice, columns, points);
    case "scatter":
      return scatter(points);
    case "histogram":
      return histogram(points.x.filter(isFinite), points.x.length, columns[choice.x]!.type);
    case "bar":
      return bars(choice, columns, points);
  }
}

function lines(choice: ChartChoice, columns: Column[], points: Points): Drawn {
  const places = [...new Set(points.x.filter(isFinite))].sort((a, b) => a - b);
  const index = new Map(places.map((place, at) => [place, at]));
  const names = points.series === null ? [null] : mostFrequent(points.series);
  const found: Line[] = [];
  for (const name of names) {
    choice.y.forEach((column, number) => {
      const values: (number | null)[] = new Array<number | null>(places.length).fill(null);
      points.x.forEach((x, row) => {
        const at = isFinite(x) ? index.get(x) : undefined;
        if (at === undefined || (points.series !== null && points.series[row] !== name)) return;
        const value = points.y[number]![row];
        if (isFinite(value)) values[at] = value;
      });
      found.push({ label: lineLabel(choice, columns, column, name, points.series !== null), values });
    });
  }
  const distinct = points.series === null ? 0 : new Set(points.series).size;
  return { kind: "line", x: places, lines: found, note: seriesNote(distinct) };
}

function lineLabel(choice: ChartChoice, columns: Column[], y: number, name: string | null, hasSeries: boolean): string {
  const column = columns[y]!.name;
  if (!hasSeries) return column;
  const shown = name === null ? "NULL" : name === "" ? "(empty)" : name;
  return choice.y.length === 1 ? shown : `${shown}: ${column}`;
}

const seriesNote = (distinct: number): string | null =>
  distinct > MOST_SERIES ? `The ${MOST_SERIES} most frequent of ${distinct} values are drawn.` : null;

/** The values with the most rows, in the order of their names. */
export function mostFrequent(values: (string | null)[]): (string | null)[] {
  const counts = new Map<string | null, number>();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  const kept = [...counts].sort((a, b) => b[1] - a[1] || compare(a[0], b[0])).slice(0, MOST_SERIES);
  return kept.map(([name]) => name).sort(compare);
}

const compare = (one: string | null, other: string | null): number =>
  one === other ? 0 : one === null ? 1 : other === null ? -1 : one < other ? -1 : 1;

function scatter(points: Points): Drawn {
  const ys = points.y[0] ?? [];
  const kept = points.x.flatMap((x, row) => (isFinite(x) && isFinite(ys[row]) ? [[x, ys[row]] as const] : []));
  kept.sort((a, b) => a[0] - b[0]);
  const note = leftOut(points.x.length - kept.length);
  return { kind: "scatter", x: kept.map(([x]) => x), y: kept.map(([, y]) => y), note };
}

const leftOut = (rows: number): string | null =>
  rows === 0 ? null : `${plural(rows, "row")} without a finite value ${rows === 1 ? "is" : "are"} left out.`;

/** Counts in bins of a round width. */
export function histogram(values: number[], rows: number, type: string): Drawn {
  const note = leftOut(rows - values.length);
  if (values.length === 0) return { kind: "histogram", low: 0, width: 1, counts: [], note };
  let [least, greatest] = [Infinity, -Infinity];
  for (const value of values) {
    least = Math.min(least, value);
    greatest = Math.max(greatest, value);
  }
  const { low, width, bins } = niceBins(least, greatest, HISTOGRAM_BINS, type);
  const counts = new Array<number>(bins).fill(0);
  for (const value of values) counts[Math.max(0, Math.min(bins - 1, Math.floor((value - low) / width)))]! += 1;
  return { kind: "histogram", low, width, counts, note };
}

const DAY = 86_400;
const MINUTES = [1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720].map((minutes) => 60 * minutes);
const TIME_STEPS = [1, 2, 5, 10, 15, 30, ...MINUTES, DAY, 2 * DAY, 7 * DAY];

/** As the service chooses them: 1, 2 or 5 times a power of ten; whole numbers for integers, whole days for dates. */
export function niceBins(least: number, greatest: number, wanted: number, type: string) {
  const share = greatest / wanted - least / wanted;
  let width = roundUp(share);
  if (/int/.test(type)) width = Math.max(1, width);
  if (type === "date" || (type.startsWith("timestamp") && share >= 1)) {
    const steps = TIME_STEPS.filter((step) => type !== "date" || step >= DAY);
    width = steps.find((step) => step >= share) ?? roundUp(share / DAY) * DAY;
  }
  let low = Math.floor(least / width) * width;
  if (!Number.isFinite(low) || low + width === low) {
    low = least;
    width = Math.max(greatest / wanted - least / wanted, Number.EPSILON * Math.abs(least), Number.MIN_VALUE);
    return { low, width, bins: wanted };
  }
  return { low, width, bins: Math.max(1, Math.floor(greatest / width - low / width) + 1) };
}

function roundUp(width: number): number {
  if (!(width > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(width));
  return [1, 2, 5].map((step) => step * power).find((one) => one >= width) ?? 10 * power;
}

function bars(choice: ChartChoice, columns: Column[], points: Points): Drawn {
  const ys = points.y[0];
  const sums = new Map<string | null, { value: number | null; rows: number }>();
  points.labels.forEach((label, row) => {
    const known = sums.get(label) ?? { value: null, rows: 0 };
    const value = ys === undefined ? 1 : ys[row];
    if (isFinite(value)) known.value = (known.value ?? 0) + value;
    known.rows += 1;
    sums.set(label, known);
  });
  const found = [...sums].sort(
    ([a, one], [b, other]) => (other.value ?? -Infinity) - (one.value ?? -Infinity) || compare(a, b),
  );
  const areSums = ys !== undefined && found.some(([, { rows }]) => rows > 1);
  return {
    kind: "bar",
    labels: found.slice(0, MOST_BARS).map(([label]) => label),
    values: found.slice(0, MOST_BARS).map(([, { value }]) => value),
    note: barNote(choice, columns, found.length, areSums),
  };
}

function barNote(choice: ChartChoice, columns: Column[], count: number, areSums: boolean): string | null {
  const column = choice.y[0] === undefined ? "rows" : columns[choice.y[0]]!.name;
  const parts = [
    areSums ? `A bar is the sum of ${column} over the rows with its value.` : null,
    count > MOST_BARS ? `The ${MOST_BARS} largest of ${count.toLocaleString("en")} are drawn.` : null,
  ].filter((one) => one !== null);
  return parts.length === 0 ? null : parts.join(" ");
}

/** What the service counted, of `/v1/statements/{id}/bins`. */
export function drawBins(choice: ChartChoice, columns: Column[], found: Rows): Drawn {
  const column = (name: string): unknown[] => {
    const at = found.columns.findIndex((one) => one.name === name);
    return at < 0 ? [] : found.rows.map((row) => row[at]);
  };
  const counts = column("count").map(Number);
  const bins = column("bin").map(Number);
  const low = Number(found.low ?? 0);
  const width = Number(found.width ?? 1);
  const note = leftOut(Number(found.left_out ?? 0));
  const middle = (bin: number): number => low + (bin + 0.5) * width;
  switch (choice.kind) {
    case "histogram": {
      const all = new Array<number>(Number(found.bins ?? 0)).fill(0);
      bins.forEach((bin, row) => (all[bin] = counts[row]!));
      return { kind: "histogram", low, width, counts: all, note };
    }
    case "scatter": {
      const [lowY, height] = [Number(found.low_y ?? 0), Number(found.width_y ?? 1)];
      const y = column("bin_y").map((bin) => lowY + (Number(bin) + 0.5) * height);
      const said = "The stronger the colour, the more points.";
      const cells = { x: bins.map(middle), y, counts, width, height };
      return { kind: "density", cells, note: note === null ? said : `${said} ${note}` };
    }
    case "bar": {
      const areSums = choice.y.length > 0;
      return {
        kind: "bar",
        labels: column("category").map((label) => (label === null ? null : String(label))),
        values: (areSums ? column("sum0") : counts).map((value) => (isFinite(value) ? value : null)),
        note: barNote(choice, columns, Number(found.categories ?? 0), areSums),
      };
    }
    case "line":
      return binnedLines(choice, columns, { bins, series: column("series"), column, middle, found, note });
  }
}

interface Binned {
  bins: number[];
  series: unknown[];
  column: (name: string) => unknown[];
  middle: (bin: number) => number;
  found: Rows;
  note: string | null;
}

function binnedLines(choice: ChartChoice, columns: Column[], binned: Binned): Drawn {
  const places = [...new Set(binned.bins)].sort((a, b) => a - b);
  const index = new Map(places.map((place, at) => [place, at]));
  const names = [...new Set(binned.series.map((one) => (one === null ? null : String(one))))];
  const lines: Line[] = [];
  for (const name of names) {
    choice.y.forEach((y, number) => {
      const [values, low, high] = ["avg", "min", "max"].map((part) => {
        const all: (number | null)[] = new Array<number | null>(places.length).fill(null);
        binned.column(`${part}${number}`).forEach((value, row) => {
          const series = binned.series[row] === null ? null : String(binned.series[row]);
          if (series === name && isFinite(value)) all[index.get(binned.bins[row]!)!] = value;
        });
        return all;
      });
      const label = lineLabel(choice, columns, y, name, choice.series !== null);
      lines.push({ label, values: values!, low: low!, high: high! });
    });
  }
  const rows = Number(binned.found.total ?? 0).toLocaleString("en");
  const said = `${rows} rows in ${places.length.toLocaleString("en")} steps: lines are means, bands reach from the least to the greatest value.`;
  const more = seriesNote(Number(binned.found.series ?? 0));
  const note = [said, more, binned.note].filter((one) => one !== null).join(" ");
  return { kind: "line", x: places.map(binned.middle), lines, note };
}
