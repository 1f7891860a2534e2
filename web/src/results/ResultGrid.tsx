/** The grid of a finished run, with its menus, the viewer of a cell, finding and the summary of what is selected. */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import { RequestFailed, windowOf } from "../api/client";
import type { Problem, Statement } from "../api/types";
import { rowsOf } from "../grid/arrow";
import type { ColumnLayout } from "../grid/columns";
import { Grid } from "../grid/Grid";
import { type Cell, cellsIn, type Range, rangeOf, type Selection, single } from "../grid/selection";
import { tell } from "../state/session";
import { MenuAt, type MenuItem, type MenuPlace } from "../theme/Menu";
import { countText, plural } from "../theme/text";
import { copied, type CopyFormat, toClipboard } from "./copy";
import { FindBar } from "./FindBar";
import { findNext, readRange, rowsRead, summarise } from "./selected";
import type { Summary } from "./summary";
import { Viewer, type Viewed } from "./Viewer";

interface Order {
  column: number;
  descending: boolean;
}

/** What the bar above the grid asks of it. */
export interface GridHandle {
  copy: (format: CopyFormat) => void;
  find: () => void;
}

interface ResultGridProps {
  statement: Statement;
  failed: (problem: Problem) => void;
  handle: (handle: GridHandle | null) => void;
}

export function ResultGrid({ statement, failed, handle }: ResultGridProps) {
  const columns = statement.columns ?? [];
  const names = columns.map((column) => column.name);
  const place = useRef<HTMLDivElement>(null);
  const grid = useRef<Grid | null>(null);
  const layout = useMemo<ColumnLayout>(() => ({ widths: [], frozen: 0 }), [statement.id]);
  const [order, sort] = useState<Order | null>(null);
  const [menu, openMenu] = useState<{ column: number; at: MenuPlace } | null>(null);
  const [viewed, view] = useState<Viewed | null>(null);
  const [isFinding, find] = useState(false);
  const [selection, select] = useState<Selection>(single({ row: 0, column: 0 }));
  const summary = useSummary(grid, selection, statement.id, order);
  const isViewing = useRef(false);
  isViewing.current = viewed !== null;
  const canSort = (column: number): boolean => names.indexOf(names[column]!) === names.lastIndexOf(names[column]!);

  const show = (cell: Cell): void => {
    const value = cell.row < 0 ? undefined : grid.current?.value(cell);
    if (value === undefined) return view(null);
    const found = grid.current!.windows.find(cell.row)!;
    view({ cell, name: names[cell.column]!, kind: columns[cell.column]!.type, type: found.block.types[cell.column]!, value });
  };

  const next = (column: number): void => {
    if (!canSort(column)) return tell("Two columns have the same name. Give them names with AS to sort.");
    sort((now) => (now?.column !== column ? { column, descending: false } : now.descending ? null : { column, descending: true }));
  };

  const copy = (format: CopyFormat): void => {
    if (grid.current !== null) void copyRange(grid.current, rangeOf(selected.current), names, format);
  };
  const selected = useRef(selection);
  selected.current = selection;
  const isFocused = useRef(false);

  useEffect(() => {
    const problemOf = (error: unknown): void => {
      if (error instanceof RequestFailed) failed(error.problem);
      else throw error;
    };
    const sorted = order === null ? {} : { order_by: names[order.column]!, descending: order.descending };
    const made = new Grid(place.current!, {
      label: `Result, ${plural(statement.row_count, "row")}`,
      columns,
      rowCount: statement.row_count,
      resultBytes: statement.stats.result_bytes ?? 0,
      layout,
      sorted: order,
      fetchRows: async (offset, limit, signal) => rowsOf(await windowOf(statement.id, { offset, limit, ...sorted }, signal)),
      failed: problemOf,
      selected: (now) => {
        select(now);
        if (isViewing.current) show(now.focus);
      },
      opened: show,
      menu: (column, at) => openMenu({ column, at }),
      sort: next,
      copy: () => copy("cells"),
    });
    grid.current = made;
    made.select(selected.current, true);
    if (isFocused.current) made.focus();
    handle({ copy, find: () => find(true) });
    return () => {
      isFocused.current = place.current?.contains(document.activeElement) ?? false;
      handle(null);
      made.destroy();
      grid.current = null;
    };
  }, [statement.id, order?.column, order?.descending]);

  const items = (column: number): MenuItem[] => [
    { label: "Sort ascending", isDisabled: !canSort(column), act: () => sort({ column, descending: false }) },
    { label: "Sort descending", isDisabled: !canSort(column), act: () => sort({ column, descending: true }) },
    { label: "Do not sort", isDisabled: order === null, note: "as the statement had it", act: () => sort(null) },
    {
      label: layout.frozen === column + 1 ? "Unfreeze columns" : "Freeze up to here",
      act: () => grid.current?.freeze(layout.frozen === column + 1 ? 0 : column + 1),
    },
    { label: "Fit width", act: () => grid.current?.fit(column) },
    { label: "Wider", note: "Alt+→", act: () => grid.current?.resize(column, (layout.widths[column] ?? 0) + 80) },
    { label: "Narrower", note: "Alt+←", act: () => grid.current?.resize(column, (layout.widths[column] ?? 0) - 80) },
    {
      label: "Select column",
      act: () => grid.current?.select({ anchor: { row: 0, column }, focus: { row: statement.row_count - 1, column } }),
    },
    { label: "Copy name", act: () => void toClipboard(names[column]!) },
  ];

  return (
    <div class="result">
      {isFinding && (
        <FindBar
          find={(text, signal, progress) =>
            findNext(grid.current!.windows, statement.row_count, selected.current.focus, text, signal, progress)
          }
          found={(cell) => grid.current?.select(single(cell))}
          close={() => {
            find(false);
            grid.current?.focus();
          }}
        />
      )}
      <div class="result-body">
        <div class="grid" ref={place} key={statement.id} />
        {viewed !== null && (
          <Viewer
            viewed={viewed}
            close={() => {
              view(null);
              grid.current?.focus();
            }}
          />
        )}
      </div>
      <SelectionBar selection={selection} summary={summary} order={order === null ? null : `${names[order.column]}${order.descending ? ", descending" : ""}`} />
      {menu !== null && (
        <MenuAt
          label={`Column ${names[menu.column]}`}
          items={items(menu.column)}
          at={menu.at}
          close={() => {
            openMenu(null);
            grid.current?.focus();
          }}
        />
      )}
    </div>
  );
}

function SelectionBar({ selection, summary, order }: { selection: Selection; summary: Summary | null; order: string | null }) {
  const range = rangeOf(selection);
  const cells = cellsIn(range);
  const isCut = rowsRead(range) < range.endRow - range.firstRow;
  return (
    <div class="selection-bar">
      <span>
        {selection.focus.row < 0 ? "Names" : `Row ${countText(selection.focus.row + 1)}`}
        {cells > 1 && ` · ${countText(cells)} cells selected`}
      </span>
      {cells > 1 && summary !== null && (
        <span class="facts">
          {isCut && <b>of the first {countText(rowsRead(range))} rows:</b>}
          <span>count {countText(summary.cells - summary.nulls)}</span>
          {summary.nulls > 0 && <span>null {countText(summary.nulls)}</span>}
          {summary.sum !== null && <span>sum {summary.sum}</span>}
          {summary.least !== null && <span>min {summary.least}</span>}
          {summary.greatest !== null && <span>max {summary.greatest}</span>}
        </span>
      )}
      {order !== null && (
        <span class="sorted">
          sorted by <bdi>{order}</bdi>
        </span>
      )}
    </div>
  );
}

/** The summary of the selection, computed a moment after it last changed. */
function useSummary(grid: { current: Grid | null }, selection: Selection, id: string, order: Order | null): Summary | null {
  const [summary, set] = useState<Summary | null>(null);
  useEffect(() => {
    set(null);
    const range = rangeOf(selection);
    if (cellsIn(range) < 2) return;
    const stop = new AbortController();
    const later = window.setTimeout(() => {
      if (grid.current === null) return;
      summarise(grid.current.windows, range, stop.signal).then(set, () => undefined); // the grid tells what failed
    }, 80);
    return () => {
      window.clearTimeout(later);
      stop.abort();
    };
  }, [selection, id, order]);
  return summary;
}

async function copyRange(grid: Grid, range: Range, names: string[], format: CopyFormat): Promise<void> {
  const stop = new AbortController();
  try {
    const rows = await readRange(grid.windows, range, names, stop.signal);
    await toClipboard(copied(format, rows));
    const isCut = rows.rows.length < range.endRow - range.firstRow;
    const more = isCut ? ` of ${countText(range.endRow - range.firstRow)}; a download has them all` : "";
    tell(`Copied ${plural(rows.rows.length, "row")}${more}`);
  } catch (error) {
    tell(error instanceof RequestFailed ? error.problem.detail : "The browser did not allow the copy.");
  }
}
