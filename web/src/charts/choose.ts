/** Which chart suits the columns of a result. */

import type { Column } from "../api/types";

export type ChartKind = "line" | "bar" | "scatter" | "histogram";

export const KINDS: readonly ChartKind[] = ["line", "bar", "scatter", "histogram"];

/** A chart's columns by number: names may repeat. */
export interface ChartChoice {
  kind: ChartKind;
  x: number;
  y: number[];
  /** The column whose values are separate lines. */
  series: number | null;
}

export type Role = "time" | "number" | "text" | "other";

const NUMBER = /^(u?(tinyint|smallint|int|bigint)|float|double|decimal\((\d+),-?\d+\))$/;
const TIME = /^(date|timestamp(tz)?\(\w+\))$/;
const TEXT = /^(string|boolean|uuid)$/;
const MOST_LINES = 4;

export function roleOf(type: string): Role {
  const number = NUMBER.exec(type);
  if (number !== null) return Number(number[3] ?? 0) <= 38 ? "number" : "other"; // wider ones are no numbers of the engine
  if (TIME.test(type)) return "time";
  return TEXT.test(type) ? "text" : "other";
}

/** Numbers that only name things, such as an id, say nothing as a line. */
const NAMES = /(^|_)(id|key|code|number|nr|no)$/i;

/** The chart that the page draws first: time and numbers are lines, one for each value of a text; text and a number
    are bars; two numbers are points; one number is a histogram. Null when there is nothing to draw. */
export function chooseChart(columns: Column[]): ChartChoice | null {
  const roles = columns.map((column) => roleOf(column.type));
  const of = (role: Role): number[] => roles.flatMap((one, at) => (one === role ? [at] : []));
  const [times, numbers, texts] = [of("time"), of("number"), of("text")];
  const telling = numbers.filter((at) => !NAMES.test(columns[at]!.name));
  const values = telling.length > 0 ? telling : numbers;
  const time = times[0];
  const text = texts[0];
  if (time !== undefined && values.length > 0) {
    const series = text ?? null;
    return { kind: "line", x: time, y: values.slice(0, series === null ? MOST_LINES : 1), series };
  }
  if (text !== undefined) return { kind: "bar", x: text, y: values.slice(0, 1), series: null };
  if (numbers.length >= 2) {
    const [x, y] = values.length >= 2 ? values : [numbers[0], numbers.find((at) => at !== numbers[0])];
    return { kind: "scatter", x: x!, y: [y!], series: null };
  }
  const only = numbers[0] ?? time;
  return only === undefined ? null : { kind: "histogram", x: only, y: [], series: null };
}

/** The columns that may be a chart's x. */
export function axisColumns(kind: ChartKind, columns: Column[]): number[] {
  return columns.flatMap((column, at) => {
    const role = roleOf(column.type);
    const fits = kind === "bar" ? role !== "other" : role === "number" || role === "time";
    return fits ? [at] : [];
  });
}

export const valueColumns = (columns: Column[]): number[] =>
  columns.flatMap((column, at) => (roleOf(column.type) === "number" ? [at] : []));

export const seriesColumns = (columns: Column[]): number[] =>
  columns.flatMap((column, at) => (["text", "number"].includes(roleOf(column.type)) ? [at] : []));

/** The same chart as another kind, with columns that this kind can show; null if it cannot. */
export function asKind(choice: ChartChoice, kind: ChartKind, columns: Column[]): ChartChoice | null {
  const axes = axisColumns(kind, columns);
  const x = axes.includes(choice.x) ? choice.x : axes[0];
  if (x === undefined) return null;
  const values = valueColumns(columns);
  const others = values.filter((at) => at !== x);
  const kept = choice.y.filter((at) => values.includes(at) && (at !== x || others.length === 0));
  const first = others.slice(0, 1);
  if (kind === "histogram") return { kind, x, y: [], series: null };
  if (kind === "bar") return { kind, x, y: (kept.length > 0 ? kept : first).slice(0, 1), series: null };
  const y = kept.length > 0 ? kept : first.length > 0 ? first : values.slice(0, 1);
  if (y.length === 0) return null;
  if (kind === "scatter") return { kind, x, y: y.slice(0, 1), series: null };
  return { kind, x, y, series: choice.series };
}
