/** The columns of a table with what metadata knows of their values, which costs no scan. */

import { tableRows } from "../api/client";
import type { TableDefinition } from "../api/types";
import { Awaited, DataTable, Name, useAsked } from "./parts";
import { type Row, numberOf, objectsOf, plainName, textIn } from "./rows";
import { shareText } from "./text";
import { bytesText, countText } from "../theme/text";

export function ColumnsOfTable({ table, version }: { table: TableDefinition; version: number | null }) {
  const at = version === null ? {} : { version };
  const asked = useAsked(() => tableRows(table.name, "columns", at), [table.name, table.version]);
  return (
    <Awaited asked={asked}>
      {(found) => {
        const rows = objectsOf(found);
        const hasBounds = rows.some((row) => (row.min == null && row.low != null) || (row.max == null && row.high != null));
        const hasComments = rows.some((row) => textIn(row, "comment") !== "");
        const hasDefaults = rows.some((row) => row.default != null);
        const total = rows.reduce((sum, row) => sum + numberOf(row, "bytes"), 0);
        const head = [
          { text: "Column" },
          { text: "Type" },
          { text: "Least" },
          { text: "Greatest" },
          { text: "Nulls", isNumber: true },
          { text: "Size", isNumber: true },
          { text: "Bloom filters", isNumber: true, title: "blocks with a bloom filter" },
          ...(hasDefaults ? [{ text: "Default" }] : []),
          ...(hasComments ? [{ text: "Comment" }] : []),
        ];
        return (
          <>
            <DataTable
              label="Columns"
              head={head}
              rows={rows.map((row) => ({
                key: textIn(row, "name"),
                cells: [
                  <ColumnName row={row} table={table} />,
                  <code>{typeOf(row, table)}</code>,
                  <Bound exact={row.min} bound={row.low} sign="≥ " />,
                  <Bound exact={row.max} bound={row.high} sign="≤ " />,
                  nullsText(row, table),
                  <span title={shareText(numberOf(row, "bytes"), total)}>{bytesText(numberOf(row, "bytes"))}</span>,
                  numberOf(row, "blocks_with_bloom") === 0 ? "" : countText(numberOf(row, "blocks_with_bloom")),
                  ...(hasDefaults ? [<Name>{textIn(row, "default")}</Name>] : []),
                  ...(hasComments ? [<Name>{textIn(row, "comment")}</Name>] : []),
                ],
              }))}
            />
            <p class="table-weak">
              From metadata: no data was read.{" "}
              {hasBounds && "≥ and ≤ are bounds, which rows keep: some were deleted since, or long texts are cut."}
            </p>
          </>
        );
      }}
    </Awaited>
  );
}

/** The type as SQL says it, which the definition has for columns that are not parts of others. */
function typeOf(row: Row, table: TableDefinition): string {
  const own = table.columns.find((column) => column.name === plainName(textIn(row, "name")));
  return own?.type ?? textIn(row, "type");
}

function ColumnName({ row, table }: { row: Row; table: TableDefinition }) {
  const name = textIn(row, "name");
  const isKey = table.key.includes(name);
  const isRequired = row.nullable === false;
  return (
    <>
      <Name>{plainName(name)}</Name>
      {isKey && <span class="table-chip">key</span>}
      {isRequired && !isKey && <span class="table-chip">not null</span>}
    </>
  );
}

const SHOWN = 80;

/** A value that some row has, or a bound that all rows keep. */
function Bound({ exact, bound, sign }: { exact: unknown; bound: unknown; sign: string }) {
  const value = exact ?? bound;
  if (value === null || value === undefined) return <span class="table-weak">–</span>;
  const text = String(value);
  return (
    <>
      {exact == null && <span class="table-weak">{sign}</span>}
      <bdi class="table-bound" title={text.length > SHOWN ? text : undefined}>
        {text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text}
      </bdi>
    </>
  );
}

function nullsText(row: Row, table: TableDefinition): string {
  if (row.null_count === null || row.null_count === undefined) return "–";
  const count = numberOf(row, "null_count");
  return count === 0 ? "0" : `${countText(count)} (${shareText(count, table.row_count)})`;
}
