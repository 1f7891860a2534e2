/** The statements that ran in this browser, newest first. */

import { signal } from "@preact/signals";

import { drop, dropAll, keep, newId, readAll } from "./store";
import type { PastRun, Run } from "./types";

const MOST = 1_000;

export const history = signal<PastRun[]>([]);

export async function loadHistory(): Promise<void> {
  history.value = (await readAll<PastRun>("history")).sort((a, b) => b.at - a.at);
}

/** Note a run that ended. */
export function remember(run: Run): void {
  const milliseconds = (run.ended ?? run.started) - run.started;
  const isStopped = run.problem?.code === "cancelled";
  const past: PastRun = {
    id: newId(),
    at: Date.now() - milliseconds,
    sql: run.sql,
    state: run.problem === null ? "finished" : isStopped ? "cancelled" : "failed",
    milliseconds,
    rows: run.statement?.row_count ?? 0,
    engine: run.statement?.engine ?? "",
    error: run.problem === null || isStopped ? null : run.problem.detail,
    asOf: run.asOf ?? null,
  };
  const all = [past, ...history.value];
  history.value = all.slice(0, MOST);
  void keep("history", past);
  void drop("history", ...all.slice(MOST).map((one) => one.id));
}

export function forgetHistory(): void {
  history.value = [];
  void dropAll("history");
}

/** Those whose text or error has all words of the search. */
export function found(all: PastRun[], search: string): PastRun[] {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return all;
  return all.filter((one) => {
    const text = `${one.sql}\n${one.error ?? ""}\n${one.state}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
}
