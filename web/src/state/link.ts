/** Links that carry a text in the URL's fragment, which is never sent to a server. They show the text; nothing runs. */

import type { EngineChoice } from "./types";

export interface Linked {
  sql: string;
  title?: string;
  engine?: EngineChoice;
  asOf?: string;
}

export function linkTo(page: string, { sql, title, engine, asOf }: Linked): string {
  const given = new URLSearchParams({ sql });
  if (title !== undefined) given.set("title", title);
  if (engine !== undefined && engine !== "auto") given.set("engine", engine);
  if (asOf !== undefined) given.set("as_of", asOf);
  return `${page.split("#")[0]}#${given}`;
}

/** What a fragment carries; null if it carries no text. */
export function linkedIn(fragment: string): Linked | null {
  const given = new URLSearchParams(fragment.replace(/^#/, ""));
  const sql = given.get("sql");
  if (sql === null) return null;
  const found: Linked = { sql };
  const [title, engine, asOf] = [given.get("title"), given.get("engine"), given.get("as_of")];
  if (title !== null) found.title = title.slice(0, 80);
  if (engine === "duckdb" || engine === "spark") found.engine = engine;
  if (asOf !== null && !Number.isNaN(Date.parse(asOf))) found.asOf = asOf;
  return found;
}
