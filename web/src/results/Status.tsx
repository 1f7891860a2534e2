/** What a run does or did: time, rows, bytes, blocks, engine, versions. */

import { useEffect, useState } from "preact/hooks";

import type { Statement } from "../api/types";
import type { Run } from "../state/types";
import { agoText, bytesText, countText, durationText, plural } from "../theme/text";
import { isChange } from "./Changed";
import { useCommitted } from "./freshness";

const TICK_MS = 100;
const MINUTE_MS = 20_000;

/** Draws again from time to time, while something is under way. */
export function useClock(isOn: boolean, milliseconds: number): void {
  const [, tick] = useState(0);
  useEffect(() => {
    if (!isOn) return;
    const timer = window.setInterval(() => tick((count) => count + 1), milliseconds);
    return () => window.clearInterval(timer);
  }, [isOn, milliseconds]);
}

export function Status({ run, stop }: { run: Run; stop: () => void }) {
  useClock(run.ended === null, TICK_MS);
  if (run.ended === null) return <Running run={run} stop={stop} />;
  return <Ended run={run} />;
}

function Running({ run, stop }: { run: Run; stop: () => void }) {
  const { statement, stopping } = run;
  const elapsed = durationText(performance.now() - run.started);
  const isQueued = statement?.state === "queued";
  return (
    <div class="status running">
      <span class="spinner" aria-hidden="true" />
      <span class="state">
        {stopping !== null ? `Stopping for ${durationText(performance.now() - stopping)}` : isQueued ? "Waiting for a free engine" : "Running"}
      </span>
      <span class="elapsed">{elapsed}</span>
      {statement !== null && <Progress statement={statement} />}
      {stopping === null && (
        <button type="button" class="stop" onClick={stop} title="Stop (Esc in the result)">
          ■ Stop
        </button>
      )}
    </div>
  );
}

function Progress({ statement }: { statement: Statement }) {
  const { progress = {}, engine, engine_reason } = statement;
  const { rows = 0, bytes_read = 0, blocks = 0, blocks_read = 0, stages = 0, stages_done = 0, tasks = 0, tasks_done = 0 } = progress;
  return (
    <span class="facts">
      {rows > 0 && <span>{plural(rows, "row")}</span>}
      {blocks > 0 && (
        <span title="Blocks are the pieces of files that are read or skipped as a whole">
          {countText(blocks_read)} of {plural(blocks, "block")}
        </span>
      )}
      {bytes_read > 0 && <span>{bytesText(bytes_read)} read</span>}
      {stages > 0 && (
        <span title="Spark divides the work into stages, and these into tasks">
          stage {Math.min(stages_done + 1, stages)} of {stages}
        </span>
      )}
      {tasks > 0 && (
        <span>
          {countText(tasks_done)} of {plural(tasks, "task")}
        </span>
      )}
      {(blocks > 0 || tasks > 0) && <progress max={tasks > 0 ? tasks : blocks} value={tasks > 0 ? tasks_done : blocks_read} aria-label="Progress" />}
      {engine === "spark" && <span title={engine_reason}>on Spark</span>}
    </span>
  );
}

function Ended({ run }: { run: Run }) {
  const { statement, problem } = run;
  useClock(true, MINUTE_MS);
  const committed = useCommitted(statement?.tables ?? []);
  const time = durationText((run.ended ?? run.started) - run.started);
  if (problem?.code === "cancelled") return <div class="status stopped">Stopped after {time}</div>;
  if (problem !== null || statement === null) return <div class="status failed">Failed after {time}</div>;
  const { blocks_total = 0, blocks_read = 0, bytes_read = 0 } = statement.stats;
  const hasRows = (statement.columns ?? []).length > 0 && !isChange(statement);
  return (
    <div class="status">
      <span class="state">{hasRows ? `${plural(statement.row_count, "row")} in ${time}` : `Done in ${time}`}</span>
      <span class="facts">
        {statement.truncated && (
          <span class="warn" title="The statement was limited; there are more rows">
            cut off
          </span>
        )}
        {blocks_total > 0 && (
          <span title="Blocks are the pieces of files that are read or skipped as a whole. See Blocks for which and why.">
            read {countText(blocks_read)} of {plural(blocks_total, "block")}, {bytesText(bytes_read)}
          </span>
        )}
        {statement.tables.map(({ name, version }) => {
          const at = committed[`${name}@${version}`];
          return (
            <span key={name} title={at === undefined ? name : `${name}, committed ${new Date(at).toLocaleString()}`}>
              <bdi>{name}</bdi> version {version}
              {at !== undefined && `, ${agoText(at, Date.now())}`}
            </span>
          );
        })}
        {run.asOf != null && <span>as of {new Date(run.asOf).toLocaleString()}</span>}
        <EngineReason statement={statement} />
      </span>
    </div>
  );
}

/** Which engine ran it, and why; the reason opens by a click, since a phone cannot hover. */
function EngineReason({ statement: { engine, engine_reason } }: { statement: Statement }) {
  const name = engine === "spark" ? "Spark" : "DuckDB";
  if (engine_reason === undefined) return <span>{name}</span>;
  return (
    <details class="reason">
      <summary title={engine_reason}>{name}</summary>
      <span>{engine_reason}</span>
    </details>
  );
}
