/** The catalog as the rows of a tree, and where its keys lead. */

import type { Column } from "../api/types";

export interface TreeRow {
  key: string;
  kind: "dataset" | "table" | "column" | "note";
  level: 1 | 2 | 3;
  label: string;
  /** A column's type, or a dataset's number of tables. */
  detail: string;
  /** Null for what has nothing below it. */
  isOpen: boolean | null;
  /** The table that the row is or belongs to. */
  table: string | null;
  place: number;
  size: number;
}

export interface KnownTable {
  name: string;
  is_writable: boolean;
}

/** The rows that are shown: those of open parents, or with a search those that match and what leads to them. */
export function rowsOf(
  tables: KnownTable[],
  columns: ReadonlyMap<string, Column[]>,
  open: ReadonlySet<string>,
  search: string,
): TreeRow[] {
  const wanted = search.trim().toLowerCase();
  const datasets = new Map<string, KnownTable[]>();
  for (const table of tables) {
    const dataset = table.name.slice(0, table.name.indexOf("."));
    datasets.set(dataset, [...(datasets.get(dataset) ?? []), table]);
  }
  const found: TreeRow[] = [];
  const shown = [...datasets].map(([dataset, own]) => [dataset, own.filter((one) => fits(one, columns, wanted))] as const);
  const kept = shown.filter(([, own]) => own.length > 0);
  kept.forEach(([dataset, own], at) => {
    const isOpen = wanted !== "" || open.has(dataset);
    const detail = String(own.length);
    found.push(row("dataset", dataset, 1, dataset, detail, isOpen, null, at, kept.length));
    if (isOpen) own.forEach((table, number) => found.push(...tableRows(table, number, own.length, columns, open, wanted)));
  });
  return found;
}

function tableRows(
  table: KnownTable,
  at: number,
  size: number,
  columns: ReadonlyMap<string, Column[]>,
  open: ReadonlySet<string>,
  wanted: string,
): TreeRow[] {
  const { name } = table;
  const label = name.slice(name.indexOf(".") + 1);
  const known = columns.get(name);
  const matching = wanted === "" ? [] : (known ?? []).filter((one) => one.name.toLowerCase().includes(wanted));
  const isNamed = name.toLowerCase().includes(wanted);
  const isOpen = open.has(name) || (wanted !== "" && !isNamed && matching.length > 0);
  const found = [row("table", name, 2, label, "", isOpen, name, at, size)];
  if (!isOpen) return found;
  if (known === undefined) return [...found, row("note", `${name} …`, 3, "Loading…", "", null, name, 0, 1)];
  const shown = matching.length > 0 && !isNamed ? matching : known;
  shown.forEach((column, number) => {
    const key = `${name} ${number} ${column.name}`;
    found.push(row("column", key, 3, column.name, column.type, null, name, number, shown.length));
  });
  return found;
}

const fits = ({ name }: KnownTable, columns: ReadonlyMap<string, Column[]>, wanted: string): boolean =>
  wanted === "" ||
  name.toLowerCase().includes(wanted) ||
  (columns.get(name) ?? []).some((one) => one.name.toLowerCase().includes(wanted));

function row(
  kind: TreeRow["kind"],
  key: string,
  level: TreeRow["level"],
  label: string,
  detail: string,
  isOpen: boolean | null,
  table: string | null,
  at: number,
  size: number,
): TreeRow {
  return { kind, key, level, label, detail, isOpen, table, place: at + 1, size };
}

/** What a key does in the tree, as ARIA's pattern has it. */
export type TreeStep = { to: number } | { open: string } | { close: string } | null;

export function stepOf(rows: TreeRow[], at: number, key: string): TreeStep {
  const here = rows[at];
  if (here === undefined) return null;
  switch (key) {
    case "ArrowDown":
      return at + 1 < rows.length ? { to: at + 1 } : null;
    case "ArrowUp":
      return at > 0 ? { to: at - 1 } : null;
    case "Home":
      return { to: 0 };
    case "End":
      return { to: rows.length - 1 };
    case "ArrowRight":
      if (here.isOpen === false) return { open: here.key };
      return here.isOpen === true && (rows[at + 1]?.level ?? 0) > here.level ? { to: at + 1 } : null;
    case "ArrowLeft": {
      if (here.isOpen === true) return { close: here.key };
      const parent = rows.slice(0, at).findLastIndex((one) => one.level < here.level);
      return parent < 0 ? null : { to: parent };
    }
    default:
      return null;
  }
}

/** The next row whose label begins with what was typed, going around. */
export function typedAhead(rows: TreeRow[], at: number, text: string): number | null {
  const wanted = text.toLowerCase();
  const begin = text.length > 1 ? at : at + 1; // a longer text goes on with the row that its first letters found
  for (let passed = 0; passed < rows.length; passed += 1) {
    const place = (begin + passed) % rows.length;
    if (rows[place]!.label.toLowerCase().startsWith(wanted)) return place;
  }
  return null;
}
