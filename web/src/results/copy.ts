/** Rows as text for the clipboard. Null is empty in tables, and an empty text is two quotes. Pure. */

import type { DataType } from "@uwdata/flechette";

import type { Value } from "../grid/arrow";
import { jsonOf, sqlOf, textOf } from "../grid/values";

export type CopyFormat = "cells" | "tsv" | "csv" | "json" | "markdown" | "insert";

export const COPY_FORMATS: { format: CopyFormat; label: string; note?: string }[] = [
  { format: "cells", label: "Cells", note: "for a spreadsheet, without names" },
  { format: "tsv", label: "TSV", note: "with names" },
  { format: "csv", label: "CSV" },
  { format: "json", label: "JSON" },
  { format: "markdown", label: "Markdown" },
  { format: "insert", label: "INSERT", note: "as a statement of SQL" },
];

export interface CopiedRows {
  names: string[];
  types: DataType[];
  rows: Value[][];
}

export function copied(format: CopyFormat, { names, types, rows }: CopiedRows): string {
  switch (format) {
    case "cells":
      if (rows.length === 1 && names.length === 1) return rows[0]![0] === null ? "" : textOf(types[0]!, rows[0]![0]!);
      return separated(rows, types, null, "\t");
    case "tsv":
      return separated(rows, types, names, "\t");
    case "csv":
      return separated(rows, types, names, ",");
    case "json":
      return json(unique(names), types, rows);
    case "markdown":
      return markdown(names, types, rows);
    case "insert":
      return insert(unique(names), types, rows);
  }
}

function separated(rows: Value[][], types: DataType[], names: string[] | null, by: string): string {
  const field = (text: string): string => (/["\n\r]/.test(text) || text.includes(by) ? `"${text.replaceAll('"', '""')}"` : text);
  const cell = (value: Value, at: number): string => (value === null ? "" : value === "" ? '""' : field(textOf(types[at]!, value)));
  const lines = rows.map((row) => row.map(cell).join(by));
  if (names !== null) lines.unshift(names.map((name) => (name === "" ? '""' : field(name))).join(by));
  return lines.join("\n");
}

/** Names that repeat get a number: objects and tables have each name once. */
function unique(names: string[]): string[] {
  const taken = new Set<string>();
  return names.map((name) => {
    let [free, number] = [name, 2];
    while (taken.has(free.toLowerCase())) free = `${name}_${number++}`;
    taken.add(free.toLowerCase());
    return free;
  });
}

function json(names: string[], types: DataType[], rows: Value[][]): string {
  const object = (row: Value[]): string =>
    `  {${row.map((value, at) => `${JSON.stringify(names[at])}: ${jsonOf(types[at]!, value)}`).join(", ")}}`;
  return rows.length === 0 ? "[]" : `[\n${rows.map(object).join(",\n")}\n]`;
}

function markdown(names: string[], types: DataType[], rows: Value[][]): string {
  const cell = (text: string): string =>
    text.replace(/[\\|<>&*_`[\]]/g, (mark) => `\\${mark}`).replace(/\r\n|[\n\r]/g, " ");
  const line = (cells: string[]): string => `| ${cells.join(" | ")} |`;
  const isRight = types.map((type) => [2, 3, 7].includes(type.typeId)); // integers, floats, decimals
  return [
    line(names.map(cell)),
    line(isRight.map((right) => (right ? "---:" : "---"))),
    ...rows.map((row) => line(row.map((value, at) => (value === null ? "*NULL*" : cell(textOf(types[at]!, value)))))),
  ].join("\n");
}

function insert(names: string[], types: DataType[], rows: Value[][]): string {
  if (rows.length === 0) return "";
  const columns = names.map((name) => `"${name.replaceAll('"', '""')}"`).join(", ");
  const values = rows.map((row) => `  (${row.map((value, at) => sqlOf(types[at]!, value)).join(", ")})`);
  return `INSERT INTO "table_name" (${columns}) VALUES\n${values.join(",\n")};`;
}

/** Put a text on the clipboard, also where the page is not served by HTTPS. */
export async function toClipboard(text: string): Promise<void> {
  if (navigator.clipboard !== undefined) return navigator.clipboard.writeText(text);
  const give = (event: ClipboardEvent): void => {
    event.clipboardData?.setData("text/plain", text);
    event.preventDefault();
  };
  document.addEventListener("copy", give, { once: true });
  document.execCommand("copy"); // old, but the only way of pages on plain HTTP
  document.removeEventListener("copy", give);
}
