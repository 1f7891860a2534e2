/** The files of a version, a page of them at a time. */

import { useState } from "preact/hooks";

import { tableRows } from "../api/client";
import type { TableDefinition } from "../api/types";
import { Awaited, DataTable, Name, useAsked } from "./parts";
import { numberOf, objectsOf, pairsOf, textIn } from "./rows";
import { bytesText, countText } from "../theme/text";

const PAGE = 200;

export function FilesOfTable({ table, version }: { table: TableDefinition; version: number | null }) {
  const [offset, setOffset] = useState(0);
  const at = version === null ? {} : { version };
  const asked = useAsked(
    () => tableRows(table.name, "files", { ...at, offset, limit: PAGE }),
    [table.name, table.version, offset],
  );
  return (
    <Awaited asked={asked}>
      {(found) => {
        const rows = objectsOf(found);
        const total = Number(found.total ?? rows.length);
        if (total === 0) return <p class="table-weak">This version has no files.</p>;
        const hasPartitions = rows.some((row) => pairsOf(row.partition).length > 0);
        return (
          <>
            <DataTable
              label="Files"
              head={[
                { text: "File" },
                ...(hasPartitions ? [{ text: "Partition" }] : []),
                { text: "Rows", isNumber: true },
                { text: "Deleted rows", isNumber: true },
                { text: "Blocks", isNumber: true },
                { text: "Size", isNumber: true },
              ]}
              rows={rows.map((row) => ({
                key: textIn(row, "location"),
                cells: [
                  <>
                    <Name>{textIn(row, "location")}</Name>
                    {row.is_registered === true && <span class="table-chip">registered</span>}
                  </>,
                  ...(hasPartitions ? [<Name>{partitionText(row.partition)}</Name>] : []),
                  countText(numberOf(row, "rows")),
                  numberOf(row, "deleted_rows") === 0 ? "" : countText(numberOf(row, "deleted_rows")),
                  countText(numberOf(row, "blocks")),
                  bytesText(numberOf(row, "bytes")),
                ],
              }))}
            />
            <Pages offset={offset} count={rows.length} total={total} go={setOffset} />
          </>
        );
      }}
    </Awaited>
  );
}

const partitionText = (partition: unknown): string =>
  pairsOf(partition)
    .map(([name, value]) => `${name} = ${value === null ? "NULL" : String(value)}`)
    .join(", ");

interface PagesProps {
  offset: number;
  count: number;
  total: number;
  go: (offset: number) => void;
}

function Pages({ offset, count, total, go }: PagesProps) {
  if (total <= PAGE) return null;
  return (
    <div class="table-choice" role="group" aria-label="Pages of files">
      <button type="button" disabled={offset === 0} onClick={() => go(Math.max(0, offset - PAGE))}>
        Previous
      </button>
      <span role="status">
        {countText(offset + 1)} to {countText(offset + count)} of {countText(total)}
      </span>
      <button type="button" disabled={offset + count >= total} onClick={() => go(offset + PAGE)}>
        Next
      </button>
    </div>
  );
}
