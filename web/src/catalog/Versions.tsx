/** The versions of a table as a timeline: what each commit did, who made it, and what the table had then. */

import { useState } from "preact/hooks";

import { tableRows } from "../api/client";
import type { TableDefinition } from "../api/types";
import { Awaited, Name, useAsked } from "./parts";
import { type Row, countsText, numberOf, objectsOf, textIn } from "./rows";
import { momentText, selectText, sinceText } from "./text";
import { bytesText, countText } from "../theme/text";

const STEP = 50;
const MOST = 10_000;

export interface VersionsProps {
  table: TableDefinition;
  show: (version: number | null) => void;
  open: (sql: string) => void;
  compare: (from: number, to: number) => void;
}

export function Versions(props: VersionsProps) {
  const [most, setMost] = useState(STEP);
  const { table } = props;
  const asked = useAsked(() => tableRows(table.name, "versions", { most }), [table.name, most]);
  return (
    <Awaited asked={asked}>
      {(found) => {
        const rows = objectsOf(found);
        return (
          <>
            <ol class="timeline" aria-label="Versions, the newest first">
              {rows.map((row, at) => (
                <Entry key={textIn(row, "version")} row={row} previous={rows[at + 1]} isNewest={at === 0} {...props} />
              ))}
            </ol>
            {rows.length >= most && most < MOST && (
              <button type="button" onClick={() => setMost(Math.min(MOST, most * 4))}>
                Show older versions
              </button>
            )}
          </>
        );
      }}
    </Awaited>
  );
}

interface EntryProps extends VersionsProps {
  row: Row;
  previous: Row | undefined;
  isNewest: boolean;
}

function Entry({ row, previous, isNewest, table, show, open, compare }: EntryProps) {
  const version = numberOf(row, "version");
  const when = textIn(row, "committed_at");
  const counts = countsText(row.counts);
  const isShown = version === table.version;
  return (
    <li class={isShown ? "timeline-shown" : ""} aria-current={isShown ? "true" : undefined}>
      <div class="timeline-what">
        <strong>{version}</strong> <span>{textIn(row, "operation")}</span>
        {row.tag != null && (
          <span class="table-chip">
            <Name>{textIn(row, "tag")}</Name>
          </span>
        )}
        <time dateTime={when} title={momentText(when)}>
          {sinceText(when)}
        </time>
        {textIn(row, "writer") !== "" && (
          <span class="table-weak">
            by <Name>{textIn(row, "writer")}</Name>
          </span>
        )}
      </div>
      {counts.length > 0 && (
        <ul class="timeline-counts" aria-label="What it did">
          {counts.map((text) => (
            <li key={text}>{text}</li>
          ))}
        </ul>
      )}
      <div class="timeline-state">
        {countText(numberOf(row, "rows"))} rows, {countText(numberOf(row, "files"))} files, {bytesText(numberOf(row, "bytes"))}
        {row.run != null && (
          <>
            , run <Name>{textIn(row, "run")}</Name>
          </>
        )}
      </div>
      <div class="timeline-buttons">
        <button type="button" onClick={() => open(selectText(table.name, version))}>
          Query<span class="catalog-hidden"> version {version}</span>
        </button>
        <button type="button" disabled={isShown} onClick={() => show(isNewest ? null : version)}>
          Show<span class="catalog-hidden"> version {version}</span>
        </button>
        {previous !== undefined && (
          <button type="button" onClick={() => compare(numberOf(previous, "version"), version)}>
            Compare<span class="catalog-hidden"> version {version}</span> with {numberOf(previous, "version")}
          </button>
        )}
      </div>
    </li>
  );
}
