/** What a statement names: its tables with their aliases, and its common table expressions. Pure, for completion. */

import { DUCKDB, type Dialect, isWord, nameOf, type Word, wordsOf } from "./words";

export interface NamedTable {
  /** The name by which its columns are called. */
  alias: string;
  /** As it was written, with its parts. */
  table: string[];
}

export interface Scope {
  tables: NamedTable[];
  /** The columns of common table expressions, as far as their text tells; `from` are tables of a star. */
  expressions: Map<string, { columns: string[]; from: NamedTable[] }>;
}

const AFTER = new Set(["from", "join", "update", "into", "table", "describe", "using"]);
const NO_ALIAS = new Set(
  ("where group order limit on using join inner left right full cross natural asof positional union except intersect having " +
    "qualify window sample set values select from when as semi anti lateral pivot unpivot offset fetch version timestamp returning " +
    "by name").split(" "),
);

export function scopeOf(sql: string, dialect: Dialect = DUCKDB): Scope {
  const words = wordsOf(sql, dialect).filter((word) => word.kind !== "comment");
  const scope: Scope = { tables: tablesIn(sql, words), expressions: new Map() };
  words.forEach((word, at) => {
    if (!isWord(sql, word, "as") || !isName(words[at - 1])) return;
    const open = isWord(sql, words[at + 1], "materialized") ? at + 2 : at + 1;
    const head = words[at - 2];
    const isExpression = isWord(sql, head, "with") || isWord(sql, head, "recursive") || isWord(sql, head, ",");
    if (!isExpression || !isWord(sql, words[open], "(")) return;
    const inner = words.slice(open + 1, closing(sql, words, open));
    scope.expressions.set(nameOf(sql, words[at - 1]!).toLowerCase(), selected(sql, inner));
  });
  return scope;
}

/** The names that a text like `a.b.` has before the place. */
export function nameBefore(sql: string, place: number, dialect: Dialect = DUCKDB): { parts: string[]; from: number } {
  const words = wordsOf(sql.slice(0, place), dialect);
  const parts: string[] = [];
  let from = place;
  let at = words.length - 1;
  if (isName(words[at]) && words[at]!.to === place) from = words[at--]!.from;
  while (isWord(sql, words[at], ".") && isName(words[at - 1])) {
    parts.unshift(nameOf(sql, words[at - 1]!));
    at -= 2;
  }
  return { parts, from };
}

/** Whether the place is in a text or a comment, where nothing is completed. */
export function isInText(sql: string, place: number, dialect: Dialect = DUCKDB): boolean {
  return wordsOf(sql, dialect).some(
    ({ kind, from, to }) =>
      (kind === "text" && from < place && place < to) ||
      (kind === "comment" && from < place && (place < to || (place === to && sql.startsWith("--", from)))) ||
      (kind === "number" && place === to),
  );
}

const isName = (word: Word | undefined): boolean => word?.kind === "name" || word?.kind === "quoted";

function tablesIn(sql: string, words: Word[]): NamedTable[] {
  const found: NamedTable[] = [];
  let isList = false;
  for (let at = 0; at < words.length; at += 1) {
    const word = words[at]!;
    const text = sql.slice(word.from, word.to).toLowerCase();
    if (word.kind === "name" && AFTER.has(text)) isList = text === "from";
    else if (!(isList && text === ",")) {
      if (word.kind === "name" && NO_ALIAS.has(text)) isList = false;
      continue;
    }
    const table: string[] = [];
    let next = at + 1;
    while (isName(words[next])) {
      if (words[next]!.kind === "name" && NO_ALIAS.has(nameOf(sql, words[next]!).toLowerCase())) break;
      table.push(nameOf(sql, words[next]!));
      if (!isWord(sql, words[next + 1], ".")) break;
      next += 2;
    }
    if (table.length === 0) continue;
    const alias = words[isWord(sql, words[next + 1], "as") ? next + 2 : next + 1];
    const isAlias = isName(alias) && !(alias!.kind === "name" && NO_ALIAS.has(nameOf(sql, alias!).toLowerCase()));
    found.push({ alias: isAlias ? nameOf(sql, alias!) : table.at(-1)!, table });
  }
  return found;
}

function closing(sql: string, words: Word[], open: number): number {
  let depth = 0;
  for (let at = open; at < words.length; at += 1) {
    if (isWord(sql, words[at], "(")) depth += 1;
    else if (isWord(sql, words[at], ")")) depth -= 1;
    if (depth === 0) return at;
  }
  return words.length;
}

/** The names of a SELECT's columns: aliases, and the last part of plain columns. */
function selected(sql: string, words: Word[]): { columns: string[]; from: NamedTable[] } {
  const columns: string[] = [];
  const begin = words.findIndex((word) => isWord(sql, word, "select"));
  let [depth, last, hasStar] = [0, undefined as Word | undefined, begin < 0];
  const end = (): void => {
    if (isName(last)) columns.push(nameOf(sql, last!));
    last = undefined;
  };
  for (const word of words.slice(begin + 1)) {
    if (isWord(sql, word, "(") || isWord(sql, word, "[")) depth += 1;
    else if (isWord(sql, word, ")") || isWord(sql, word, "]")) depth -= 1;
    if (depth === 0 && isWord(sql, word, "from")) break;
    if (depth === 0 && isWord(sql, word, ",")) end();
    else if (depth === 0 && isWord(sql, word, "*") && last === undefined) hasStar = true;
    else last = depth === 0 ? word : undefined;
  }
  if (begin >= 0) end();
  return { columns, from: hasStar ? tablesIn(sql, words) : [] };
}
