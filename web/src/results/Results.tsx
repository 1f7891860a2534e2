/** The rows of a run, with what one can do with them. */

import { useEffect, useRef, useState } from "preact/hooks";

import { downloadUrl, RequestFailed } from "../api/client";
import type { Problem } from "../api/types";
import { isGone } from "../state/runs";
import { tell } from "../state/session";
import type { Run } from "../state/types";
import { MenuButton, type MenuItem } from "../theme/Menu";
import { bytesText } from "../theme/text";
import { Changed, isChange } from "./Changed";
import { COPY_FORMATS, type CopyFormat } from "./copy";
import { ProblemView } from "./ProblemView";
import { type GridHandle, ResultGrid } from "./ResultGrid";
import { Status } from "./Status";

export interface ResultsProps {
  run: Run | null;
  stop: () => void;
  again: () => void;
  fixes: { name: string; act: () => void }[];
  place: { label: string; act: () => void } | undefined;
}

const DOWNLOADS = [
  { format: "csv", label: "CSV" },
  { format: "parquet", label: "Parquet" },
  { format: "arrow", label: "Arrow" },
  { format: "ndjson", label: "JSON lines" },
];

export function Results({ run, stop, again, fixes, place }: ResultsProps) {
  const [later, fail] = useState<Problem | null>(null);
  const grid = useRef<GridHandle | null>(null);
  const id = run?.statement?.id ?? "";
  useEffect(() => fail(null), [id]);
  if (run === null) return <Nothing />;
  const { statement, problem } = run;
  const isDone = run.ended !== null && problem === null && statement !== null;
  const columns = statement?.columns ?? [];
  const isCounts = isDone && isChange(statement);
  const hasGrid = isDone && columns.length > 0 && !isCounts;
  return (
    <section class="results" aria-label="Results">
      <div class="result-bar">
        <Status run={run} stop={stop} />
        {hasGrid && statement.row_count > 0 && <Tools statementId={id} bytes={statement.stats.result_bytes ?? 0} handle={grid} fail={fail} />}
      </div>
      {later !== null && <Late problem={later} again={again} close={() => fail(null)} />}
      {problem !== null && problem.code !== "cancelled" && (
        <ProblemView problem={problem} fixes={fixes} place={place} again={problem.retryable ? again : undefined} />
      )}
      {problem?.code === "cancelled" && <p class="message">The statement was stopped before it ended. Its rows are gone.</p>}
      {isDone && columns.length === 0 && <p class="message">The statement was carried out. It returns no rows.</p>}
      {isCounts && <Changed statement={statement} />}
      {hasGrid && statement.row_count === 0 && <Empty columns={columns} />}
      {hasGrid && statement.row_count > 0 && (
        <ResultGrid key={id} statement={statement} failed={fail} handle={(handle) => void (grid.current = handle)} />
      )}
    </section>
  );
}

const Nothing = () => (
  <section class="results" aria-label="Results">
    <p class="message">
      Write a statement and press <kbd>Ctrl</kbd>+<kbd>Enter</kbd>: its rows appear here. <kbd>F1</kbd> lists all keys.
    </p>
  </section>
);

const Empty = ({ columns }: { columns: { name: string; type: string }[] }) => (
  <div class="message">
    <p>No rows: nothing fits the statement. It would have these columns:</p>
    <ul class="columns">
      {columns.map((column, at) => (
        <li key={at}>
          <bdi>{column.name}</bdi> <span class="weak">{column.type}</span>
        </li>
      ))}
    </ul>
  </div>
);

/** A problem with rows that were there before. */
const Late = ({ problem, again, close }: { problem: Problem; again: () => void; close: () => void }) => (
  <div class="late" role="group" aria-label="Problem with the rows">
    <span>{isGone(problem) ? "The server no longer keeps these rows." : problem.detail}</span>
    <button type="button" onClick={again}>
      Run again
    </button>
    <button type="button" class="quiet" aria-label="Close message" onClick={close}>
      ✕
    </button>
  </div>
);

interface ToolsProps {
  statementId: string;
  bytes: number;
  handle: { current: GridHandle | null };
  fail: (problem: Problem) => void;
}

function Tools({ statementId, bytes, handle, fail }: ToolsProps) {
  const copies: MenuItem[] = COPY_FORMATS.map(({ format, label, note }) => ({
    label,
    note,
    act: () => handle.current?.copy(format as CopyFormat),
  }));
  const downloads: MenuItem[] = DOWNLOADS.map(({ format, label }) => ({
    label,
    act: () => void download(statementId, format, fail),
  }));
  return (
    <div class="tools">
      <button type="button" class="quiet" onClick={() => handle.current?.find()} title="Find in all rows">
        Find
      </button>
      <MenuButton label="Copy the selected cells" items={copies}>
        Copy ▾
      </MenuButton>
      <MenuButton label="Download all rows" title={`Download all rows (about ${bytesText(bytes)}); the statement does not run again`} items={downloads}>
        Download ▾
      </MenuButton>
    </div>
  );
}

async function download(id: string, format: string, fail: (problem: Problem) => void): Promise<void> {
  try {
    const link = document.createElement("a");
    link.href = (await downloadUrl(id, format)).href;
    link.download = `result.${format}`;
    link.click();
    tell(`The download of all rows as ${format} has begun`);
  } catch (error) {
    if (!(error instanceof RequestFailed)) throw error;
    fail(error.problem);
  }
}

