/** What the buttons and keys of a tab do. */

import { forgetNames, quoted, quotedTable } from "../editor/complete";
import { placeOf } from "../editor/codePoints";
import type { EditorHandle } from "../editor/Editor";
import { proposed, wrongPlace } from "../editor/fixes";
import type { Marks } from "../editor/marks";
import { parametersOf, sentParameters } from "../editor/parameters";
import { statementsOf, toRun } from "../editor/split";
import { dialectOf } from "../editor/words";
import { toClipboard } from "../results/copy";
import { linkTo } from "../state/link";
import { paneOf, showPane } from "../state/panes";
import { isRunning, type RunText, runsOf, runTexts } from "../state/runs";
import { info, tell } from "../state/session";
import { activeTab, openText } from "../state/tabs";
import type { PastRun, Run, Tab } from "../state/types";

const CHANGES = /^\s*(create|drop|alter|insert|update|delete|merge|replace|comment)\b/i;

/** Whether the text is read as Spark's SQL. */
export const isSparkText = (tab: Tab): boolean => (tab.engine === "auto" ? info.value?.engine === "spark" : tab.engine === "spark");

export function runTab(editor: EditorHandle | null, isAll: boolean): void {
  const tab = activeTab.value;
  if (tab?.kind !== "sql" || editor === null) return;
  editor.closeChoices();
  const { from, to } = editor.selection();
  const dialect = dialectOf(isSparkText(tab));
  const texts = isAll ? statementsOf(tab.text, dialect) : toRun(tab.text, from, to, dialect);
  if (texts.length === 0) return tell("There is no statement to run.");
  if (isRunning(tab.id)) return tell("A statement of this tab still runs. Stop it, or use another tab.");
  void runAll(tab, texts);
}

export const runAgain = (tab: Tab, run: Run): void => void runAll(tab, [run]);

async function runAll(tab: Tab, texts: RunText[]): Promise<void> {
  if (paneOf(tab.id) === "history") showPane(tab.id, "result");
  const dialect = dialectOf(isSparkText(tab));
  const tasks = texts.map(({ sql, from }) => {
    const names = parametersOf(sql, dialect);
    const parameters = sentParameters(names, tab.parameters);
    return { sql, from, ...(parameters === undefined ? {} : { parameters }) };
  });
  await runTexts(tab.id, tasks, { engine: tab.engine, ...(tab.asOf === null ? {} : { as_of: tab.asOf }) });
  if (texts.some(({ sql }) => CHANGES.test(sql))) forgetNames();
  if (runsOf(tab.id).value.runs.some((run) => run.problem !== null)) showPane(tab.id, "result");
}

/** What is marked in the text: the statement that runs, or the place of its error, if it still stands there. */
export function marksOf(tab: Tab, run: Run | null): Marks {
  if (run === null) return { running: null, wrong: null };
  if (run.ended === null) return { running: { from: run.from, to: run.from + run.sql.length }, wrong: null };
  const position = run.problem?.position;
  const stands = tab.text.slice(run.from, run.from + run.sql.length) === run.sql;
  if (position === undefined || !stands) return { running: null, wrong: null };
  return { running: null, wrong: { ...placeOf(run.sql, run.from, position), why: run.problem!.detail } };
}

/** A click that shows the place of the error, by its line in the tab's text, or else the statement. */
export function errorPlace(tab: Tab, run: Run, editor: EditorHandle | null): { label: string; act: () => void } {
  const wrong = marksOf(tab, run).wrong;
  if (wrong === null) return { label: "Show the statement", act: () => editor?.show(run.from) };
  const before = tab.text.slice(0, wrong.from);
  const line = before.split("\n").length;
  const column = [...before.slice(before.lastIndexOf("\n") + 1)].length + 1;
  return { label: `Go to line ${line}, column ${column}`, act: () => editor?.show(wrong.from) };
}

/** For each name that the problem proposes, a click that puts it in the place of the wrong one. */
export function errorFixes(tab: Tab, run: Run, editor: EditorHandle | null): { name: string; act: () => void }[] {
  if (run.problem === null || editor === null) return [];
  const stands = tab.text.slice(run.from, run.from + run.sql.length) === run.sql;
  if (!stands) return [];
  const position = run.problem.position;
  const inside = wrongPlace(run.sql, position === undefined ? null : placeOf(run.sql, 0, position), run.problem);
  if (inside === null) return [];
  const dialect = dialectOf(isSparkText(tab));
  const isTable = /table/.test(run.problem.code);
  return proposed(run.problem).map((name) => ({
    name,
    act: () => {
      const insert = isTable ? quotedTable(name, dialect) : quoted(name, dialect);
      editor.replace(run.from + inside.from, run.from + inside.to, insert);
    },
  }));
}

/** The formatter is loaded when it is first used. */
export async function formatTab(editor: EditorHandle | null): Promise<void> {
  const tab = activeTab.value;
  if (tab?.kind !== "sql" || editor === null) return;
  const { formatSql } = await import("../editor/format");
  const text = editor.text();
  const next = formatSql(text, dialectOf(isSparkText(tab)));
  if (next !== text) editor.replace(0, text.length, next);
  tell("Formatted");
}

export async function shareTab(): Promise<void> {
  const tab = activeTab.value;
  if (tab?.kind !== "sql") return;
  const { text: sql, title, engine, asOf } = tab;
  const link = linkTo(location.href, { sql, title, engine, ...(asOf === null ? {} : { asOf }) });
  try {
    await toClipboard(link);
    tell(link.length > 8_000 ? "Copied the link. It is long: some programs cut it off." : "Copied the link. It shows the text; it does not run it.");
  } catch {
    tell("The browser did not allow the copy.");
  }
}

export function openPast(past: PastRun): void {
  openText({ text: past.sql, asOf: past.asOf });
}

