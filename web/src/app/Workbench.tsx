/** A tab of SQL: the text with its buttons above, the panes of its results below. */

import { useState } from "preact/hooks";

import type { ScanPlan } from "../api/types";
import { BlockMap } from "../blocks/BlockMap";
import { Chart } from "../charts/Chart";
import { Editor, type EditorHandle } from "../editor/Editor";
import { parametersOf } from "../editor/parameters";
import { dialectOf } from "../editor/words";
import { Results } from "../results/Results";
import { divide, layout, type Pane, PANES, paneOf, showPane } from "../state/panes";
import { runsOf, showRun, stopRun } from "../state/runs";
import { info } from "../state/session";
import { changeTab, tabs } from "../state/tabs";
import type { EngineChoice, Run, Tab } from "../state/types";
import { Splitter } from "../theme/Splitter";
import { Fields } from "./Fields";
import { History } from "./History";
import { errorFixes, errorPlace, isSparkText, marksOf, openPast, runAgain } from "./work";

export interface WorkbenchProps {
  tab: Tab;
  editor: { current: EditorHandle | null };
  run: () => void;
  runAll: () => void;
  format: () => void;
  share: () => void;
}

export function Workbench({ tab, editor, run, runAll, format, share }: WorkbenchProps) {
  const { runs, shown } = runsOf(tab.id).value;
  const current = runs[shown] ?? null;
  const isBusy = runs.some((one) => one.ended === null);
  const isSpark = isSparkText(tab);
  const [isAsOfShown, showAsOf] = useState(false);
  const hasSpark = info.value?.engines.spark !== undefined;
  const wanted = tab.text.length < 300_000 ? parametersOf(tab.text, dialectOf(isSpark)) : [];
  return (
    <div class="workbench" id="tab-panel" role="tabpanel" aria-label={tab.title}>
      <section class="upper" aria-label="Statement">
        <div class="toolbar" role="toolbar" aria-label="Statement">
          {isBusy ? (
            <button type="button" class="primary stop" onClick={() => stopRun(tab.id)}>
              ■ Stop
            </button>
          ) : (
            <button type="button" class="primary" title="Run the selection, or the statement at the cursor (Ctrl+Enter)" onClick={run}>
              ▶ Run
            </button>
          )}
          <button type="button" class="quiet" disabled={isBusy} title="Run all statements (Ctrl+Shift+Enter)" onClick={runAll}>
            Run all
          </button>
          <button type="button" class="quiet" title="Format the text (Alt+Shift+F)" onClick={format}>
            Format
          </button>
          <button type="button" class="quiet" title="Copy a link that shows this text (Ctrl+S)" onClick={share}>
            Link
          </button>
          <button
            type="button"
            class="quiet"
            aria-pressed={isAsOfShown || tab.asOf !== null}
            title="Read every table as it was at a time"
            onClick={() => {
              if (tab.asOf !== null) changeTab(tab.id, { asOf: null });
              showAsOf(!(isAsOfShown || tab.asOf !== null));
            }}
          >
            As of…
          </button>
          {hasSpark && (
            <label class="engine">
              Engine
              <select
                value={tab.engine}
                title="Automatic: Spark where a statement reads a lot, else DuckDB"
                onChange={(event) => changeTab(tab.id, { engine: event.currentTarget.value as EngineChoice })}
              >
                <option value="auto">automatic</option>
                <option value="duckdb">DuckDB</option>
                <option value="spark">Spark</option>
              </select>
            </label>
          )}
        </div>
        <Fields tab={tab} names={wanted} isAsOfShown={isAsOfShown || tab.asOf !== null} closeAsOf={() => showAsOf(false)} run={run} />
        <Editor
          tab={tab}
          isSpark={isSpark}
          marks={marksOf(tab, current)}
          changed={(id, text) => changeTab(id, { text })}
          handle={(handle) => void (editor.current = handle)}
        />
      </section>
      <Splitter
        label="Height of the text"
        isVertical={false}
        value={layout.value.editor}
        least={10}
        most={85}
        step={4}
        valueAt={({ y }) => {
          const box = document.getElementById("tab-panel")!.getBoundingClientRect();
          return ((y - box.top) / box.height) * 100;
        }}
        change={(value) => divide({ editor: value })}
      />
      <section class="lower" aria-label="Result">
        <PaneTabs tab={tab.id} />
        {runs.length > 1 && <RunChoice tab={tab.id} runs={runs} shown={shown} />}
        <PanePanel tab={tab} run={current} editor={editor} />
      </section>
    </div>
  );
}

function PaneTabs({ tab }: { tab: string }) {
  const now = paneOf(tab);
  const onKey = (event: KeyboardEvent): void => {
    const at = PANES.findIndex(({ pane }) => pane === now);
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: PANES.length - 1 }[event.key];
    if (to === undefined) return;
    const { pane } = PANES[(to + PANES.length) % PANES.length]!;
    showPane(tab, pane);
    document.getElementById(`pane-${pane}`)?.focus();
    event.preventDefault();
  };
  return (
    <div class="panes" role="tablist" aria-label="Panes" onKeyDown={onKey}>
      {PANES.map(({ pane, label }) => (
        <button
          type="button"
          key={pane}
          role="tab"
          id={`pane-${pane}`}
          aria-selected={pane === now}
          aria-controls="pane-panel"
          tabIndex={pane === now ? 0 : -1}
          onClick={() => showPane(tab, pane)}
        >
          {label}
        </button>
      ))}
    </div>
  );
}

/** Which of the statements that ran together is shown. */
function RunChoice({ tab, runs, shown }: { tab: string; runs: Run[]; shown: number }) {
  const sign = (run: Run): string => (run.ended === null ? "…" : run.problem === null ? "✓" : "✕");
  return (
    <label class="run-choice">
      Statement
      <select value={String(shown)} onChange={(event) => showRun(tab, Number(event.currentTarget.value))}>
        {runs.map((run, at) => (
          <option key={at} value={String(at)}>
            {sign(run)} {at + 1}: {run.sql.replace(/\s+/g, " ").slice(0, 60)}
          </option>
        ))}
      </select>
    </label>
  );
}

interface PanelProps {
  tab: Tab;
  run: Run | null;
  editor: { current: EditorHandle | null };
}

function PanePanel({ tab, run, editor }: PanelProps) {
  const pane = paneOf(tab.id);
  return (
    <div class="pane" id="pane-panel" role="tabpanel" aria-labelledby={`pane-${pane}`}>
      {/* the results of all tabs stay, so that each is found again as it was left */}
      {tabs.value.map((one) => {
        const { runs, shown } = runsOf(one.id).value;
        const isShown = one.id === tab.id;
        if (one.kind !== "sql" || (runs.length === 0 && !isShown)) return null;
        return runs.length === 0 ? (
          <div key={one.id} hidden={pane !== "result"} class="kept">
            <Results run={null} stop={() => undefined} again={() => undefined} fixes={[]} place={undefined} />
          </div>
        ) : (
          runs.map((each, at) => (
            <div key={`${one.id}:${at}`} hidden={!isShown || at !== shown || pane !== "result"} class="kept">
              <Results
                run={each}
                stop={() => stopRun(one.id)}
                again={() => runAgain(one, each)}
                fixes={isShown ? errorFixes(one, each, editor.current) : []}
                place={isShown ? errorPlace(one, each, editor.current) : undefined}
              />
            </div>
          ))
        );
      })}
      {pane === "history" && <History open={openPast} />}
      {(pane === "chart" || pane === "blocks") && <OfRun pane={pane} run={run} />}
    </div>
  );
}

const NO_PLANS: ScanPlan[] = [];

/** The chart or the block map of a run that ended well. */
function OfRun({ pane, run }: { pane: Pane; run: Run | null }) {
  const statement = run?.statement ?? null;
  if (run === null || statement === null || run.ended === null || run.problem !== null) {
    const why = run !== null && run.ended === null ? "This appears when the statement has ended." : "Run a statement first.";
    return <p class="message">{why}</p>;
  }
  if (pane === "chart") {
    if ((statement.columns ?? []).length === 0 || statement.row_count === 0) return <p class="message">There are no rows to draw.</p>;
    return <Chart key={statement.id} run={run} />;
  }
  return <BlockMap key={statement.id} source={{ statement: statement.id, plans: statement.plans ?? NO_PLANS }} />;
}
