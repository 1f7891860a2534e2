/** The rows of a chart: themselves while they are few, counted by the service otherwise. */

import { ask, query, windowOf } from "../api/client";
import type { Column, Rows, Statement } from "../api/types";
import { type RowBlock, rowsOf } from "../grid/arrow";
import { textOf } from "../grid/values";
import { type ChartChoice, roleOf } from "./choose";
import { type Drawn, MOST_POINTS, type Points, drawBins, drawRows } from "./series";

const LINE_BINS = 600;
const SERIES_BINS = 200;
const SCATTER_BINS = 128;
const HISTOGRAM_BINS = 40;

export async function fetchDrawn(statement: Statement, choice: ChartChoice, signal: AbortSignal): Promise<Drawn> {
  const columns = statement.columns ?? [];
  if (statement.row_count > MOST_POINTS) return drawBins(choice, columns, await binsOf(statement.id, choice, signal));
  const bytes = await windowOf(statement.id, { offset: 0, limit: MOST_POINTS }, signal);
  return drawRows(choice, columns, pointsOf(choice, columns, rowsOf(bytes)));
}

async function binsOf(id: string, choice: ChartChoice, signal: AbortSignal): Promise<Rows> {
  const lines = choice.series === null ? LINE_BINS : SERIES_BINS;
  const bins = { line: lines, scatter: SCATTER_BINS, histogram: HISTOGRAM_BINS, bar: undefined }[choice.kind];
  const { kind, x, series } = choice;
  const y = choice.y.length === 0 ? undefined : choice.y.join(",");
  const asked = query({ kind, x, y, series, bins });
  const answer = await ask(`/v1/statements/${id}/bins${asked}`, { headers: { Accept: "application/json" }, signal });
  return (await answer.json()) as Rows;
}

function pointsOf(choice: ChartChoice, columns: Column[], rows: RowBlock): Points {
  const numbers = (column: number): (number | null)[] =>
    Array.from({ length: rows.length }, (_, row) => numberAt(rows, row, column, columns[column]!.type));
  const texts = (column: number): (string | null)[] =>
    Array.from({ length: rows.length }, (_, row) => {
      const value = rows.value(row, column);
      return value === null ? null : textOf(rows.types[column]!, value);
    });
  return {
    x: choice.kind === "bar" ? [] : numbers(choice.x),
    labels: choice.kind === "bar" ? texts(choice.x) : [],
    y: choice.y.map(numbers),
    series: choice.series === null ? null : texts(choice.series),
  };
}

/** A value as a double, which is enough for a pixel: times in seconds since 1970. */
function numberAt(rows: RowBlock, row: number, column: number, type: string): number | null {
  const value = rows.value(row, column);
  if (value === null) return null;
  if (roleOf(type) !== "time") return decimalOf(value, type);
  if (type === "date") return Number(value) / 1000;
  const unit = /\((\w+)\)/.exec(type)?.[1] ?? "us";
  return Number(value) / { s: 1, ms: 1e3, us: 1e6, ns: 1e9 }[unit]!;
}

function decimalOf(value: unknown, type: string): number | null {
  const scale = /^decimal\(\d+,(-?\d+)\)$/.exec(type)?.[1];
  const found = Number(value) / 10 ** Number(scale ?? 0);
  return Number.isNaN(found) ? null : found;
}
