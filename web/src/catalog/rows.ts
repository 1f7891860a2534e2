/** Answers of the catalog as objects. */

import type { Rows } from "../api/types";

export type Row = Record<string, unknown>;

export function objectsOf({ columns, rows }: Rows): Row[] {
  return rows.map((row) => Object.fromEntries(columns.map((column, at) => [column.name, row[at]])));
}

export const numberOf = (row: Row, name: string): number => Number(row[name] ?? 0);

export const textIn = (row: Row, name: string): string => (row[name] == null ? "" : String(row[name]));

/** A map of the service, which comes as pairs. */
export function pairsOf(value: unknown): [string, unknown][] {
  if (Array.isArray(value)) return value.filter(Array.isArray).map(([name, one]) => [String(name), one]);
  return value !== null && typeof value === "object" ? Object.entries(value) : [];
}

/** The words of a count's name: "files_added" is "file added" of one. */
function wordsOf(name: string, count: number): string {
  const words = name.replaceAll("_", " ");
  return count === 1 ? words.replace(/^(\w+?)s\b/, "$1") : words;
}

/** What a commit did, such as "rows_added: +1,000". */
export function countsText(counts: unknown): string[] {
  return pairsOf(counts)
    .filter(([, count]) => Number(count) !== 0)
    .map(([name, count]) => `${Number(count).toLocaleString("en")} ${wordsOf(name, Number(count))}`);
}

/** A name as people gave it: quotes only where a dot would lead into a column. */
export function plainName(path: string): string {
  const quoted = /^"((?:[^"]|"")*)"$/.exec(path);
  return quoted === null ? path : quoted[1]!.replaceAll('""', '"');
}
