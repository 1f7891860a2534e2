/** The statements of a text, and the one at the cursor. Pure. */

import { DUCKDB, type Dialect, isWord, type Word, wordsOf } from "./words";

export interface StatementText {
  sql: string;
  from: number;
  to: number;
}

/** The statements between semicolons, without spaces around them. Comments alone are none. */
export function statementsOf(sql: string, dialect: Dialect = DUCKDB): StatementText[] {
  const found: StatementText[] = [];
  let words: Word[] = [];
  const end = (): void => {
    if (words.some((word) => word.kind !== "comment")) {
      const [from, to] = [words[0]!.from, words.at(-1)!.to];
      found.push({ sql: sql.slice(from, to), from, to });
    }
    words = [];
  };
  for (const word of wordsOf(sql, dialect)) {
    if (isWord(sql, word, ";")) end();
    else words.push(word);
  }
  end();
  return found;
}

/** The statement that has the cursor; between two, the one before it on the same line, else the next. */
export function statementAt(sql: string, cursor: number, dialect: Dialect = DUCKDB): StatementText | null {
  const all = statementsOf(sql, dialect);
  const inside = all.find((one) => one.from <= cursor && cursor <= one.to);
  if (inside !== undefined) return inside;
  const before = all.findLast((one) => one.to < cursor);
  if (before !== undefined && !sql.slice(before.to, cursor).includes("\n")) return before;
  return all.find((one) => one.from > cursor) ?? before ?? null;
}

/** What runs: the selected text if there is one, else the statement at the cursor. */
export function toRun(sql: string, from: number, to: number, dialect: Dialect = DUCKDB): StatementText[] {
  if (from === to) {
    const one = statementAt(sql, from, dialect);
    return one === null ? [] : [one];
  }
  return statementsOf(sql.slice(from, to), dialect).map((one) => ({ ...one, from: one.from + from, to: one.to + from }));
}
