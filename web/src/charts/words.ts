/** A chart in words and as a table, for those who do not see it. */

import type { Column } from "../api/types";
import { plural } from "../theme/text";
import { type ChartChoice, roleOf } from "./choose";
import type { Drawn } from "./series";

const NUMBER = new Intl.NumberFormat("en", { maximumSignificantDigits: 7 });
const SHOWN_ROWS = 200;

/** A place on an axis as text. */
export function placeText(value: number, type: string): string {
  if (roleOf(type) !== "time") return NUMBER.format(value);
  const time = new Date(value * 1000);
  if (Number.isNaN(time.getTime())) return NUMBER.format(value);
  const text = time.toISOString();
  return type === "date" || text.endsWith("T00:00:00.000Z") ? text.slice(0, 10) : text.slice(0, 19).replace("T", " ");
}

export const valueText = (value: number | null | undefined): string => (value == null ? "" : NUMBER.format(value));

export const barLabel = (label: string | null): string => (label === null ? "NULL" : label === "" ? "(empty)" : label);

/** What is drawn, in a sentence. */
export function summaryOf(choice: ChartChoice, columns: Column[], drawn: Drawn): string {
  const x = columns[choice.x]!;
  const y = choice.y.map((at) => columns[at]!.name).join(", ");
  switch (drawn.kind) {
    case "line": {
      const all = drawn.lines.flatMap((line) => line.values.filter((one) => one !== null));
      const lines = drawn.lines.length === 1 ? "A line" : `${drawn.lines.length} lines`;
      const places = spanText(drawn.x, x.type);
      return all.length === 0 ? "No values to draw." : `${lines} of ${y} over ${x.name}, ${places}, values ${spanText(all, "double")}.`;
    }
    case "scatter":
      return drawn.x.length === 0
        ? "No points to draw."
        : `${NUMBER.format(drawn.x.length)} points: ${x.name} ${spanText(drawn.x, x.type)}, ${y} ${spanText(drawn.y, "double")}.`;
    case "density":
      return `${NUMBER.format(drawn.cells.counts.reduce((sum, one) => sum + one, 0))} points counted in cells: ${x.name} ${spanText(drawn.cells.x, x.type)}, ${y} ${spanText(drawn.cells.y, "double")}.`;
    case "histogram": {
      const most = drawn.counts.reduce((best, count, at) => (count > drawn.counts[best]! ? at : best), 0);
      if (drawn.counts.length === 0) return "No values to count.";
      const [from, to] = [drawn.low + most * drawn.width, drawn.low + (most + 1) * drawn.width];
      return `${x.name} in ${drawn.counts.length} bins: most rows, ${NUMBER.format(drawn.counts[most]!)}, from ${placeText(from, x.type)} to ${placeText(to, x.type)}.`;
    }
    case "bar": {
      const what = y === "" ? "rows" : y;
      if (drawn.labels.length === 0) return "No bars to draw.";
      return `${plural(drawn.labels.length, "bar")} of ${what} by ${x.name}, the largest ${barLabel(drawn.labels[0]!)} with ${valueText(drawn.values[0])}.`;
    }
  }
}

function spanText(values: number[], type: string): string {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  return low === high ? `at ${placeText(low, type)}` : `from ${placeText(low, type)} to ${placeText(high, type)}`;
}

export interface TableOf {
  head: string[];
  rows: string[][];
  /** Rows that are left out. */
  more: number;
}

/** The numbers that are drawn. */
export function tableOf(choice: ChartChoice, columns: Column[], drawn: Drawn): TableOf {
  const x = columns[choice.x]!;
  const y = choice.y[0] === undefined ? "rows" : columns[choice.y[0]]!.name;
  switch (drawn.kind) {
    case "line": {
      const rows = drawn.x.map((place, at) => [
        placeText(place, x.type),
        ...drawn.lines.map((line) => valueText(line.values[at])),
      ]);
      return cut([x.name, ...drawn.lines.map((line) => line.label)], rows);
    }
    case "scatter":
      return cut([x.name, y], drawn.x.map((place, at) => [placeText(place, x.type), valueText(drawn.y[at])]));
    case "density": {
      const { cells } = drawn;
      const rows = cells.x.map((place, at) => [placeText(place, x.type), valueText(cells.y[at]), valueText(cells.counts[at])]);
      return cut([x.name, y, "rows"], rows);
    }
    case "histogram": {
      const rows = drawn.counts.map((count, bin) => {
        const from = drawn.low + bin * drawn.width;
        return [placeText(from, x.type), placeText(from + drawn.width, x.type), valueText(count)];
      });
      return cut(["from", "to", "rows"], rows);
    }
    case "bar":
      return cut([x.name, y], drawn.labels.map((label, at) => [barLabel(label), valueText(drawn.values[at])]));
  }
}

const cut = (head: string[], rows: string[][]): TableOf => ({
  head,
  rows: rows.slice(0, SHOWN_ROWS),
  more: Math.max(0, rows.length - SHOWN_ROWS),
});
