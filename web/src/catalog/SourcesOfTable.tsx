/** What was ingested into a table: running jobs, runs with the rows that they rejected, and every source. */

import { tableRows } from "../api/client";
import type { Rows, TableDefinition } from "../api/types";
import { Awaited, DataTable, Name, useAsked } from "./parts";
import { type Row, numberOf, objectsOf, textIn } from "./rows";
import { momentText, quotedTable, sinceText } from "./text";
import { bytesText, countText } from "../theme/text";

const MOST_RUNS = 100;
const MOST_SOURCES = 500;

export interface SourcesProps {
  table: TableDefinition;
  version: number | null;
  open: (sql: string) => void;
}

export function SourcesOfTable({ table, version, open }: SourcesProps) {
  const at = version === null ? {} : { version };
  const jobs = useAsked(() => tableRows(table.name, "jobs"), [table.name]);
  const runs = useAsked(() => tableRows(table.name, "runs", { most: MOST_RUNS }), [table.name]);
  const sources = useAsked(
    () => tableRows(table.name, "sources", { ...at, limit: MOST_SOURCES }),
    [table.name, table.version],
  );
  return (
    <>
      <Awaited asked={jobs}>{(found) => <Jobs rows={objectsOf(found)} />}</Awaited>
      <h2>Runs</h2>
      <Awaited asked={runs}>{(found) => <Runs found={found} table={table} open={open} />}</Awaited>
      <h2>Sources</h2>
      <Awaited asked={sources}>{(found) => <Sources found={found} />}</Awaited>
    </>
  );
}

function Jobs({ rows }: { rows: Row[] }) {
  if (rows.length === 0) return null;
  return (
    <>
      <h2>Jobs</h2>
      <ul class="table-list">
        {rows.map((row) => (
          <li key={textIn(row, "job")}>
            <Name>{textIn(row, "job")}</Name> {row.is_alive === true ? "runs" : "was abandoned"}, started by{" "}
            <Name>{textIn(row, "owner")}</Name> {sinceText(textIn(row, "started_at"))}
            {textIn(row, "note") !== "" && (
              <>
                : <Name>{textIn(row, "note")}</Name>
              </>
            )}
          </li>
        ))}
      </ul>
    </>
  );
}

/** The rows that a table's ingests rejected; of one run, if it is given. */
export const rejectedText = (rejected: string, run: string | null): string =>
  `SELECT *\nFROM ${quotedTable(rejected)}${run === null ? "" : `\nWHERE run = '${run.replaceAll("'", "''")}'`}\nLIMIT 1000`;

function Runs({ found, table, open }: { found: Rows; table: TableDefinition; open: (sql: string) => void }) {
  const rows = objectsOf(found);
  const rejected = (found.rejected_rows as Record<string, string> | undefined)?.[table.name] ?? null;
  if (rows.length === 0) return <p class="table-weak">No ingest has run into this table.</p>;
  return (
    <DataTable
      label="Runs"
      head={[
        { text: "Started" },
        { text: "State" },
        { text: "What" },
        { text: "By" },
        { text: "Took", isNumber: true },
        { text: "Sources", isNumber: true },
        { text: "Failed", isNumber: true },
        { text: "Rows", isNumber: true },
        { text: "Rejected", isNumber: true },
        { text: "Read", isNumber: true },
      ]}
      rows={rows.map((row) => ({
        key: textIn(row, "run"),
        cells: [
          <time dateTime={startOf(row)} title={momentText(startOf(row))}>
            {sinceText(startOf(row))}
          </time>,
          <RunState row={row} />,
          <Name>{textIn(row, "asked")}</Name>,
          <Name>{textIn(row, "owner")}</Name>,
          row.seconds == null ? "" : `${Number(row.seconds).toFixed(1)} s`,
          countText(numberOf(row, "sources")),
          numberOf(row, "failed") === 0 ? "" : countText(numberOf(row, "failed")),
          countText(numberOf(row, "row_count")),
          <Rejected count={numberOf(row, "rejected_count")} open={rejected === null ? null : () => open(rejectedText(rejected, textIn(row, "run")))} />,
          bytesText(numberOf(row, "source_bytes")),
        ],
      }))}
    />
  );
}

const startOf = (row: Row): string => textIn(row, row.started == null ? "ended" : "started");

function RunState({ row }: { row: Row }) {
  const why = textIn(row, "problem") || textIn(row, "reason");
  return (
    <>
      {textIn(row, "state")}
      {why !== "" && (
        <>
          : <Name>{why}</Name>
        </>
      )}
    </>
  );
}

function Rejected({ count, open }: { count: number; open: (() => void) | null }) {
  if (count === 0) return <></>;
  if (open === null) return <>{countText(count)}</>;
  return (
    <button type="button" onClick={open} title="Query the rejected rows">
      {countText(count)}
    </button>
  );
}

function Sources({ found }: { found: Rows }) {
  const rows = objectsOf(found);
  const total = Number(found.total ?? rows.length);
  if (rows.length === 0) return <p class="table-weak">No source was ingested.</p>;
  return (
    <>
      <DataTable
        label="Sources"
        head={[
          { text: "Source" },
          { text: "Status" },
          { text: "Rows", isNumber: true },
          { text: "Version", isNumber: true },
          { text: "Error" },
        ]}
        rows={rows.map((row) => ({
          key: textIn(row, "uri"),
          cells: [
            <Name>{textIn(row, "uri")}</Name>,
            textIn(row, "status"),
            row.rows == null ? "" : countText(numberOf(row, "rows")),
            textIn(row, "version"),
            <Name>{textIn(row, "error")}</Name>,
          ],
        }))}
      />
      {total > rows.length && <p class="table-weak">The first {countText(rows.length)} of {countText(total)} are listed.</p>}
    </>
  );
}
