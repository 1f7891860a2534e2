/** Names that the service proposes for one that it does not know. Pure. */

import type { Problem } from "../api/types";

const HINT = /Did you mean (.+?)\?/;
const CANDIDATES = /Candidate (?:bindings|tables|functions|macros|columns): ?((?:\s*"(?:[^"]|"")+"(?: \(.*?\))?,?)+)/i;
const MOST = 3;

export interface Fix {
  /** The name, as the button shows it. */
  name: string;
  from: number;
  to: number;
  insert: string;
}

/** The names that the problem proposes, nearest first. */
export function proposed(problem: Problem): string[] {
  const hint = HINT.exec(problem.hint ?? "") ?? HINT.exec(problem.detail);
  const names = hint === null ? [] : hint[1]!.split(/ or |, /).map((name) => name.replace(/^"(.*)"$/, "$1"));
  const candidates = CANDIDATES.exec(problem.detail);
  for (const [, name] of (candidates?.[1] ?? "").matchAll(/"((?:[^"]|"")+)"/g)) names.push(name!.replaceAll('""', '"'));
  return [...new Set(names)].slice(0, MOST);
}

/** The place of the name that is not known: where the problem is, else where its text says it once. */
export function wrongPlace(text: string, place: { from: number; to: number } | null, problem: Problem): { from: number; to: number } | null {
  if (place !== null) return place;
  const wrong = /there is no (?:table|column|dataset) (\S+)/.exec(problem.detail)?.[1];
  if (wrong === undefined) return null;
  const first = text.toLowerCase().indexOf(wrong.toLowerCase());
  const isOnce = first >= 0 && text.toLowerCase().indexOf(wrong.toLowerCase(), first + 1) < 0;
  return isOnce ? { from: first, to: first + wrong.length } : null;
}
