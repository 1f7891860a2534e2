/** Parameters of a statement: $name or ?, on Spark :name. They become fields. Pure. */

import type { ParameterText } from "../state/types";
import { DUCKDB, type Dialect, wordsOf } from "./words";

const WHOLE = /^[+-]?\d{1,18}$/;
const POINT = /^[+-]?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?$/;

/** The names in the order of the text: once each; `?` count from 1. */
export function parametersOf(sql: string, dialect: Dialect = DUCKDB): string[] {
  const names: string[] = [];
  let places = 0;
  for (const word of wordsOf(sql, dialect)) {
    if (word.kind !== "parameter") continue;
    const text = sql.slice(word.from, word.to);
    const name = text === "?" ? String((places += 1)) : text.slice(1);
    if (!names.includes(name)) names.push(name);
  }
  return names;
}

/** The parameters as requests have them: a list if they are numbered, else an object; undefined without any. */
export function sentParameters(
  names: string[],
  texts: Record<string, ParameterText>,
): Record<string, unknown> | unknown[] | undefined {
  if (names.length === 0) return undefined;
  const value = (name: string): unknown => sentValue(Object.hasOwn(texts, name) ? texts[name] : undefined);
  if (names.every((name) => /^\d+$/.test(name))) {
    const most = Math.max(...names.map(Number));
    return Array.from({ length: Math.min(most, 1_000) }, (_, at) => value(String(at + 1)));
  }
  return Object.fromEntries(names.map((name) => [name, value(name)]));
}

/** A field's value: a number if it reads as one, unless a type was chosen. */
export function sentValue(given: ParameterText | undefined): unknown {
  const { text, type } = given ?? { text: "", type: "automatic" };
  if (type === "null") return null;
  if (type === "string") return text;
  if (type === "decimal") {
    const [whole = "", fraction = ""] = text.replace(/^[+-]/, "").split(".");
    const scale = Math.min(fraction.length, 38);
    const precision = Math.min(Math.max(whole.length + scale, 1), 38);
    return { value: text, type: `decimal(${precision},${scale})` };
  }
  if (type !== "automatic") return { value: text, type };
  if (WHOLE.test(text)) {
    const number = Number(text);
    return Number.isSafeInteger(number) ? number : { value: text, type: "bigint" };
  }
  if (POINT.test(text)) return Number(text);
  return text;
}
