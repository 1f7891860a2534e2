/** Runs of statements: started, watched until they end, stopped. Each tab has its own. */

import { signal, type Signal } from "@preact/signals";

import { forget, RequestFailed, run as start, type RunRequest, statement as look } from "../api/client";
import type { Problem, Statement } from "../api/types";
import { remember } from "./history";
import { announce } from "./session";
import type { Run } from "./types";

/** The runs that a tab shows: one, or those of Run all. */
export interface TabRuns {
  runs: Run[];
  shown: number;
}

export interface RunText {
  sql: string;
  from: number;
  parameters?: Record<string, unknown> | unknown[];
}

const FIRST_WAIT = 0.2;
const NEXT_WAIT = 0.5;
const byTab = new Map<string, Signal<TabRuns>>();

export function runsOf(tab: string): Signal<TabRuns> {
  let known = byTab.get(tab);
  if (known === undefined) byTab.set(tab, (known = signal<TabRuns>({ runs: [], shown: 0 })));
  return known;
}

export const shownRun = (tab: string): Run | null => {
  const { runs, shown } = runsOf(tab).value;
  return runs[shown] ?? null;
};

export const isRunning = (tab: string): boolean => runsOf(tab).value.runs.some((run) => run.ended === null);

/** Run the texts one after the other, until one fails. What ran before in the tab is forgotten. */
export async function runTexts(tab: string, texts: RunText[], request: Omit<RunRequest, "sql" | "parameters">): Promise<void> {
  const state = runsOf(tab);
  if (isRunning(tab) || texts.length === 0) return;
  discard(state.value.runs);
  state.value = { runs: [], shown: 0 };
  for (const text of texts) {
    const at = state.value.runs.length;
    const { sql, from, parameters } = text;
    const run: Run = {
      sql,
      from,
      started: performance.now(),
      ended: null,
      statement: null,
      problem: null,
      stopping: null,
      asOf: request.as_of ?? null,
    };
    state.value = { runs: [...state.value.runs, run], shown: at };
    const ended = await watch(state, at, { ...request, sql, ...(parameters === undefined ? {} : { parameters }) });
    remember(ended);
    announce(endText(ended));
    if (ended.problem !== null) break;
  }
}

/** Stop what runs in the tab. It is stopped when `ended` is set. */
export function stopRun(tab: string): void {
  const state = runsOf(tab);
  const at = state.value.runs.findIndex((run) => run.ended === null && run.stopping === null);
  const run = state.value.runs[at];
  if (run === undefined) return;
  change(state, at, { stopping: performance.now() });
  announce("Stopping");
  if (run.statement !== null) void end(state, at, run.statement.id);
}

export function showRun(tab: string, shown: number): void {
  const state = runsOf(tab);
  state.value = { ...state.value, shown };
}

/** The tab is closed: stop what runs in it, and let the server delete its rows. */
export function dropRuns(tab: string): void {
  stopRun(tab);
  discard(runsOf(tab).value.runs.filter((run) => run.ended !== null));
  byTab.delete(tab);
}

/** The page goes: statements that run would run for nobody. */
export function dropAllRuns(): void {
  for (const state of byTab.values()) discard(state.value.runs);
}

/** The result is no longer kept by the server, as its windows tell. */
export function isGone(problem: Problem): boolean {
  return problem.status === 410 || problem.code === "statement_not_found" || problem.code === "statement_gone";
}

function discard(runs: Run[]): void {
  for (const { statement } of runs) {
    if (statement !== null) forget(statement.id, true).catch(() => undefined); // it may be gone already
  }
}

function change(state: Signal<TabRuns>, at: number, values: Partial<Run>): Run {
  const next = { ...state.value.runs[at]!, ...values };
  state.value = { ...state.value, runs: state.value.runs.map((run, index) => (index === at ? next : run)) };
  return next;
}

async function watch(state: Signal<TabRuns>, at: number, request: RunRequest): Promise<Run> {
  try {
    let found = await start({ ...request, wait: FIRST_WAIT, tags: { app: "page" } });
    while (!hasEnded(found)) {
      const run = change(state, at, { statement: found });
      if (run.stopping !== null) return await end(state, at, found.id);
      found = await look(found.id, NEXT_WAIT);
    }
    if (state.value.runs[at]!.stopping !== null) return await end(state, at, found.id);
    return change(state, at, { statement: found, problem: found.error ?? null, ended: performance.now() });
  } catch (error) {
    const run = state.value.runs[at]!;
    if (run.ended !== null) return run; // stopped: the statement that was watched is gone
    if (!(error instanceof RequestFailed)) throw error;
    if (run.stopping !== null && run.statement !== null) return await end(state, at, run.statement.id);
    return change(state, at, { problem: error.problem, ended: performance.now() });
  }
}

const ending = new WeakMap<Signal<TabRuns>, Map<string, Promise<Run>>>();

/** Cancel, and wait until the engine has stopped. */
function end(state: Signal<TabRuns>, at: number, id: string): Promise<Run> {
  const known = ending.get(state) ?? new Map<string, Promise<Run>>();
  ending.set(state, known);
  let one = known.get(id);
  if (one === undefined) known.set(id, (one = cancel(state, at, id)));
  return one;
}

async function cancel(state: Signal<TabRuns>, at: number, id: string): Promise<Run> {
  let problem = STOPPED;
  try {
    await forget(id);
  } catch (error) {
    if (!(error instanceof RequestFailed)) throw error;
    if (error.problem.status !== 404) problem = error.problem;
  }
  return change(state, at, { problem, ended: performance.now() });
}

const STOPPED: Problem = {
  type: "/errors#cancelled",
  title: "Stopped",
  status: 422,
  code: "cancelled",
  detail: "The statement was stopped.",
  retryable: false,
};

const hasEnded = ({ state }: Statement): boolean => state === "finished" || state === "failed" || state === "cancelled";

function endText(run: Run): string {
  const seconds = ((run.ended ?? run.started) - run.started) / 1000;
  const time = seconds < 1 ? `${Math.round(seconds * 1000)} ms` : `${seconds.toFixed(1)} s`;
  if (run.problem?.code === "cancelled") return `Stopped after ${time}`;
  if (run.problem !== null) return `Error: ${run.problem.detail}`;
  return run.statement?.columns === undefined ? `Done in ${time}` : `${run.statement.row_count} rows in ${time}`;
}
