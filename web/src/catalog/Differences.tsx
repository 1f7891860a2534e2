/** How two versions differ: rows, bytes, columns, properties and files. */

import { useId } from "preact/hooks";

import { tableRows } from "../api/client";
import type { TableDefinition } from "../api/types";
import { Awaited, DataTable, Name, useAsked } from "./parts";
import { numberOf, objectsOf, textIn, type Row } from "./rows";
import { signedBytes, signedText, sinceText } from "./text";
import { bytesText, countText } from "../theme/text";

const MOST_FILES = 500;
const MOST_VERSIONS = 500;

export interface DifferencesProps {
  table: TableDefinition;
  since: number | null;
  compare: (from: number, to: number) => void;
}

export function Differences({ table, since, compare }: DifferencesProps) {
  const versions = useAsked(() => tableRows(table.name, "versions", { most: MOST_VERSIONS }), [table.name]);
  return (
    <Awaited asked={versions}>
      {(found) => <Compared table={table} since={since} compare={compare} versions={objectsOf(found)} />}
    </Awaited>
  );
}

function Compared({ table, since, compare, versions }: DifferencesProps & { versions: Row[] }) {
  const id = useId();
  const older = versions.map((row) => numberOf(row, "version")).find((version) => version < table.version);
  const from = since ?? older ?? null;
  const asked = useAsked(
    () => tableRows(table.name, "diff", { since: from, version: table.version, limit: MOST_FILES }),
    [table.name, from, table.version],
  );
  if (from === null) return <p class="table-weak">There is no older version to compare with.</p>;
  const options = versions.map((row) => (
    <option key={textIn(row, "version")} value={textIn(row, "version")}>
      {textIn(row, "version")}, {textIn(row, "operation")}, {sinceText(textIn(row, "committed_at"))}
    </option>
  ));
  return (
    <>
      <div class="table-choice">
        <label for={`${id}from`}>From version</label>
        <select id={`${id}from`} value={from} onChange={(event) => compare(Number(event.currentTarget.value), table.version)}>
          {options}
        </select>
        <label for={`${id}to`}>to</label>
        <select id={`${id}to`} value={table.version} onChange={(event) => compare(from, Number(event.currentTarget.value))}>
          {options}
        </select>
      </div>
      <Awaited asked={asked}>
        {(found) => {
          const files = objectsOf(found);
          const total = Number(found.total ?? files.length);
          const definition = (found.definition ?? []) as Row[];
          return (
            <>
              <p class="table-sum" role="status">
                {signedText(Number(found.rows_added))} rows, {signedBytes(Number(found.bytes_added))},{" "}
                {countText(total)} {total === 1 ? "file" : "files"} changed.
              </p>
              {definition.length > 0 && (
                <ul class="table-list" aria-label="Changes of the definition">
                  {definition.map((change, at) => (
                    <li key={at}>
                      <DefinitionChange change={change} />
                    </li>
                  ))}
                </ul>
              )}
              {files.length === 0 ? (
                <p class="table-weak">No file differs.</p>
              ) : (
                <DataTable
                  label="Files that differ"
                  head={[
                    { text: "Change" },
                    { text: "File" },
                    { text: "Rows", isNumber: true },
                    { text: "Deleted rows", isNumber: true },
                    { text: "Size", isNumber: true },
                  ]}
                  rows={files.map((row) => ({
                    key: `${textIn(row, "change")} ${textIn(row, "file")}`,
                    cells: [
                      <span class={`table-change table-change-${textIn(row, "change").replace(" ", "-")}`}>
                        {SIGNS[textIn(row, "change")] ?? ""} {textIn(row, "change")}
                      </span>,
                      <Name>{textIn(row, "file")}</Name>,
                      countText(numberOf(row, "rows")),
                      numberOf(row, "deleted_rows") === 0 ? "" : countText(numberOf(row, "deleted_rows")),
                      bytesText(numberOf(row, "bytes")),
                    ],
                  }))}
                />
              )}
              {total > files.length && <p class="table-weak">The first {countText(files.length)} of them are listed.</p>}
            </>
          );
        }}
      </Awaited>
    </>
  );
}

const SIGNS: Record<string, string> = { added: "+", removed: "−", "rows deleted": "~" };

function DefinitionChange({ change }: { change: Row }) {
  const column = <Name>{textIn(change, "column")}</Name>;
  const was = <Name>{textIn(change, "was") === "" ? "nothing" : textIn(change, "was")}</Name>;
  switch (change.change) {
    case "added":
      return (
        <>
          Column {column} <code>{textIn(change, "type")}</code> was added.
        </>
      );
    case "dropped":
      return <>Column {column} was dropped.</>;
    case "renamed":
      return (
        <>
          Column {was} is now {column}.
        </>
      );
    case "type":
      return (
        <>
          Column {column} was <code>{textIn(change, "was")}</code> and is <code>{textIn(change, "type")}</code>.
        </>
      );
    case "property":
      return (
        <>
          Property <Name>{textIn(change, "property")}</Name> was {was} and is{" "}
          <Name>{textIn(change, "now") === "" ? "nothing" : textIn(change, "now")}</Name>.
        </>
      );
    default:
      return (
        <>
          The comment was {was} and is <Name>{textIn(change, "now") === "" ? "nothing" : textIn(change, "now")}</Name>.
        </>
      );
  }
}
