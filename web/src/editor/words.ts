/** The words of a text of SQL, as DuckDB and Spark divide it: texts, quoted names, comments, parameters. Pure. */

export type WordKind = "name" | "quoted" | "text" | "number" | "comment" | "parameter" | "mark";

export interface Word {
  kind: WordKind;
  from: number;
  to: number;
}

const NAME = /[\p{L}_][\p{L}\p{N}_$]*/uy;
const NUMBER = /(?:0[xX][\da-fA-F_]+|(?:\d[\d_]*)?\.?\d[\d_]*(?:[eE][+-]?\d+)?\.?)/y;
const TAG = /\$(?:[\p{L}_][\p{L}\p{N}_]*)?\$/uy;
const PARAMETER = /\$(?:[\p{L}_][\p{L}\p{N}_]*|\d+)|\?/uy;
const SPARK_PARAMETER = /:[\p{L}_][\p{L}\p{N}_]*/uy;
const MARK = /::|<=|>=|<>|!=|\|\||->>|->|=>|:=|\*\*|\/\/|[^\s]/uy;
const SPACE = /\s+/y;

export interface Dialect {
  isSpark: boolean;
}

export const DUCKDB: Dialect = { isSpark: false };
export const SPARK: Dialect = { isSpark: true };

export const dialectOf = (isSpark: boolean): Dialect => (isSpark ? SPARK : DUCKDB);

export function wordsOf(sql: string, dialect: Dialect = DUCKDB): Word[] {
  const words: Word[] = [];
  let at = 0;
  const take = (kind: WordKind, to: number): void => {
    words.push({ kind, from: at, to });
    at = to;
  };
  while (at < sql.length) {
    const space = match(SPACE, sql, at);
    if (space > at) {
      at = space;
      continue;
    }
    const character = sql[at]!;
    if (sql.startsWith("--", at)) take("comment", endOfLine(sql, at));
    else if (sql.startsWith("/*", at)) take("comment", endOfComment(sql, at));
    else if (character === "'") take("text", endOfQuoted(sql, at, "'", dialect.isSpark || isEscaping(sql, words, at)));
    else if (character === '"') take(dialect.isSpark ? "text" : "quoted", endOfQuoted(sql, at, '"', dialect.isSpark));
    else if (character === "`" && dialect.isSpark) take("quoted", endOfQuoted(sql, at, "`", false));
    else if (!dialect.isSpark && match(TAG, sql, at) > at) take("text", endOfDollars(sql, at));
    else if (!dialect.isSpark && match(PARAMETER, sql, at) > at) take("parameter", match(PARAMETER, sql, at));
    else if (dialect.isSpark && isSparkParameter(sql, at)) take("parameter", parameterEnd(sql, at));
    else if (match(NAME, sql, at) > at) take("name", match(NAME, sql, at));
    else if (/[\d.]/.test(character) && match(NUMBER, sql, at) > at) take("number", match(NUMBER, sql, at));
    else take("mark", Math.max(match(MARK, sql, at), at + 1));
  }
  return words;
}

/** The name that a word says, without its quotes. */
export function nameOf(sql: string, word: Word): string {
  const text = sql.slice(word.from, word.to);
  if (word.kind !== "quoted") return text;
  const quote = text[0]!;
  return text.slice(1, text.endsWith(quote) && text.length > 1 ? -1 : undefined).replaceAll(quote + quote, quote);
}

export const isWord = (sql: string, word: Word | undefined, text: string): boolean =>
  word !== undefined && (word.kind === "name" || word.kind === "mark") && sql.slice(word.from, word.to).toLowerCase() === text;

function match(pattern: RegExp, sql: string, at: number): number {
  pattern.lastIndex = at;
  return pattern.test(sql) ? pattern.lastIndex : at;
}

const isSparkParameter = (sql: string, at: number): boolean =>
  sql[at] === "?" || (sql[at - 1] !== ":" && !/[\p{L}\p{N}_)\]]/u.test(sql[at - 1] ?? "") && match(SPARK_PARAMETER, sql, at) > at);

const parameterEnd = (sql: string, at: number): number => (sql[at] === "?" ? at + 1 : match(SPARK_PARAMETER, sql, at));

/** E'…' has escapes with backslashes. */
function isEscaping(sql: string, words: Word[], at: number): boolean {
  const last = words.at(-1);
  return last !== undefined && last.to === at && /^e$/i.test(sql.slice(last.from, last.to));
}

function endOfLine(sql: string, at: number): number {
  const end = sql.indexOf("\n", at);
  return end < 0 ? sql.length : end;
}

/** Comments may be nested. */
function endOfComment(sql: string, at: number): number {
  let depth = 0;
  for (let next = at; next < sql.length; next += 1) {
    if (sql.startsWith("/*", next)) {
      depth += 1;
      next += 1;
    } else if (sql.startsWith("*/", next)) {
      depth -= 1;
      next += 1;
      if (depth === 0) return next + 1;
    }
  }
  return sql.length;
}

function endOfQuoted(sql: string, at: number, quote: string, hasEscapes: boolean): number {
  for (let next = at + 1; next < sql.length; next += 1) {
    if (hasEscapes && sql[next] === "\\") next += 1;
    else if (sql[next] === quote && sql[next + 1] === quote) next += 1;
    else if (sql[next] === quote) return next + 1;
  }
  return sql.length;
}

function endOfDollars(sql: string, at: number): number {
  const tag = sql.slice(at, match(TAG, sql, at));
  const end = sql.indexOf(tag, at + tag.length);
  return end < 0 ? sql.length : end + tag.length;
}
