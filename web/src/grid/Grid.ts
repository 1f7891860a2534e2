/** A grid of a result's rows, however many: it has elements only for the cells that can be seen. No framework inside. */

import type { Value } from "./arrow";
import { fill, fillWaiting } from "./cells";
import { type ColumnLayout, Columns, fittedWidth } from "./columns";
import { HEAD_HEIGHT, ROW_HEIGHT } from "./heights";
import { GridRow, type HeadCell, RowPool } from "./pool";
import { canvasOf, type Extent, type Place, rowsIn, rolled, scrolled, settled, showing } from "./scroll";
import { type Cell, everything, isIn, moved, type Range, rangeOf, type Selection, single } from "./selection";
import { type FetchRows, Windows } from "./windows";



const SETTLE_MS = 150;
const FETCH_MS = 25;

export interface GridOptions {
  label: string;
  columns: { name: string; type: string }[];
  rowCount: number;
  resultBytes: number;
  /** Filled by the grid when it has no widths; keep it to keep the user's widths. */
  layout: ColumnLayout;
  sorted: { column: number; descending: boolean } | null;
  fetchRows: FetchRows;
  failed: (error: unknown) => void;
  selected: (selection: Selection) => void;
  /** The value is to be seen whole. */
  opened: (cell: Cell) => void;
  /** The menu of a column is wanted, below these pixels of the window. */
  menu: (column: number, at: { left: number; bottom: number }) => void;
  sort: (column: number) => void;
  copy: () => void;
}

let grids = 0;

export class Grid {
  readonly windows: Windows;
  private readonly id = `grid${(grids += 1)}`;
  private readonly sizer = element("sizer");
  private readonly layer = element("layer");
  private readonly body = element("body");
  private readonly head: GridRow;
  private readonly pool: RowPool;
  private readonly columns: Columns;
  private readonly watcher: ResizeObserver;
  private place: Place = { top: 0, native: 0 };
  private settling = 0;
  private fetching = 0;
  private selection: Selection = single({ row: 0, column: 0 });
  private dragged: "cells" | number | null = null;

  constructor(
    private readonly root: HTMLElement,
    private readonly options: GridOptions,
  ) {
    const failed = (error: unknown): void => options.failed(error);
    const { rowCount, resultBytes, fetchRows, layout } = options;
    this.windows = new Windows(rowCount, resultBytes, fetchRows, () => this.paint(), failed);
    const isNew = layout.widths.length !== options.columns.length;
    if (isNew) layout.widths = options.columns.map((one, at) => fittedWidth(one.name, one.type, at, null));
    this.columns = new Columns(layout, Math.max(44, String(rowCount).length * 8 + 18));
    this.head = new GridRow(true);
    this.pool = new RowPool(this.body);
    this.build();
    this.watcher = new ResizeObserver(() => this.measure());
    this.watcher.observe(root);
    this.measure();
    if (isNew && rowCount > 0) this.fitAll().catch(() => undefined); // the window that the rows need tells the failure
  }

  destroy(): void {
    this.watcher.disconnect();
    this.windows.stop();
    window.clearTimeout(this.settling);
    window.clearTimeout(this.fetching);
    this.root.replaceChildren();
  }

  /** The value of a cell whose window is here; undefined while it is not. */
  value(cell: Cell): Value | undefined {
    const found = this.windows.find(cell.row);
    return found === undefined ? undefined : found.block.value(found.at, cell.column);
  }

  select(selection: Selection, isQuiet = false): void {
    this.selection = selection;
    const { row, column } = selection.focus;
    if (row >= 0) this.move(showing(this.extent(), this.place, row));
    const left = this.columns.leftFor(column, this.root.scrollLeft, this.root.clientWidth);
    if (left !== this.root.scrollLeft) this.root.scrollLeft = left;
    this.paint();
    if (!isQuiet) this.options.selected(selection);
  }

  freeze(count: number): void {
    this.options.layout.frozen = count;
    this.measure();
  }

  resize(column: number, width: number): void {
    this.columns.resize(column, width);
    this.measure();
  }

  /** The width that the sample of the rows needs. */
  fit(column: number): void {
    const sample = this.windows.find(Math.max(rowsIn(this.extent(), this.place.top).first, 0))?.block ?? null;
    const { name, type } = this.options.columns[column]!;
    this.resize(column, fittedWidth(name, type, column, sample));
  }

  focus(): void {
    this.root.focus({ preventScroll: true });
  }

  private async fitAll(): Promise<void> {
    const stop = new AbortController();
    for await (const { block } of this.windows.read(0, 1, stop.signal)) {
      this.options.columns.forEach((one, at) => this.columns.resize(at, fittedWidth(one.name, one.type, at, block)));
    }
    this.measure();
  }

  private extent(): Extent {
    const view = Math.max(this.root.clientHeight - HEAD_HEIGHT, ROW_HEIGHT);
    return { rows: this.options.rowCount, rowHeight: ROW_HEIGHT, view };
  }

  private build(): void {
    const { root, options } = this;
    root.setAttribute("role", "grid");
    root.setAttribute("aria-label", options.label);
    root.setAttribute("aria-rowcount", String(options.rowCount + 1));
    root.setAttribute("aria-colcount", String(options.columns.length + 1));
    root.setAttribute("aria-multiselectable", "true");
    root.tabIndex = 0;
    for (const part of [this.sizer, this.layer]) part.setAttribute("role", "none");
    this.body.setAttribute("role", "rowgroup");
    this.layer.append(this.head.element, this.body);
    this.sizer.append(this.layer);
    root.replaceChildren(this.sizer);
    root.onscroll = () => this.onScroll();
    root.onwheel = (event) => this.onWheel(event);
    root.onkeydown = (event) => this.onKey(event);
    root.onfocus = () => this.paint();
    this.layer.onpointerdown = (event) => this.onPointer(event);
    this.layer.ondblclick = (event) => this.onDouble(event);
    this.layer.onclick = (event) => this.onHead(event);
  }

  private measure(): void {
    const extent = this.extent();
    this.sizer.style.height = `${Math.max(canvasOf(extent) + HEAD_HEIGHT, 1)}px`;
    this.sizer.style.width = `${this.columns.width}px`;
    this.layer.style.height = `${Math.min(this.root.clientHeight, canvasOf(extent) + HEAD_HEIGHT)}px`;
    this.move(settled(extent, { ...this.place, top: Math.min(this.place.top, extent.rows * ROW_HEIGHT) }));
    this.paint();
  }

  /** Put the rows and the scrollbar where they belong. */
  private move(place: Place): void {
    this.place = place;
    if (Math.abs(this.root.scrollTop - place.native) >= 1) this.root.scrollTop = place.native;
    this.place = { top: place.top, native: this.root.scrollTop }; // browsers round to their own pixels
  }

  private onScroll(): void {
    if (this.root.scrollTop !== this.place.native) {
      this.move(scrolled(this.extent(), this.place, this.root.scrollTop));
      this.settleSoon();
    }
    this.paint();
  }

  private onWheel(event: WheelEvent): void {
    if (event.ctrlKey || event.shiftKey || event.deltaY === 0) return; // zooms, or goes sideways
    const unit = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? ROW_HEIGHT : event.deltaMode === WheelEvent.DOM_DELTA_PAGE ? this.extent().view : 1;
    const place = rolled(this.extent(), this.place, event.deltaY * unit);
    if (place === null) return;
    event.preventDefault();
    this.root.scrollLeft += event.deltaX * unit;
    this.move(place);
    this.settleSoon();
    this.paint();
  }

  private settleSoon(): void {
    window.clearTimeout(this.settling);
    this.settling = window.setTimeout(() => this.move(settled(this.extent(), this.place)), SETTLE_MS);
  }

  private paint(): void {
    const { first, end } = rowsIn(this.extent(), this.place.top);
    const view = this.root.clientWidth;
    const frozen = this.columns.frozenIn(view);
    const seen = this.columns.seen(this.root.scrollLeft, view);
    this.head.lay(this.columns, frozen, seen);
    this.paintHead();
    const range = rangeOf(this.selection);
    const isWaiting = this.pool.show(first, end, (row, index) => {
      row.lay(this.columns, frozen, seen);
      row.move(index, index * ROW_HEIGHT - this.place.top);
      return this.paintRow(row, index, range);
    });
    this.markFocus();
    const margin = Math.ceil((end - first) / 2) + 20;
    if (isWaiting || this.fetching === 0) this.fetchSoon(Math.max(first - margin, 0), end + margin);
  }

  /** Not more often than every few milliseconds: who drags the scrollbar passes many rows. */
  private fetchSoon(first: number, end: number): void {
    if (this.fetching !== 0 || this.options.rowCount === 0) return;
    this.fetching = window.setTimeout(() => {
      this.fetching = 0;
      const now = rowsIn(this.extent(), this.place.top);
      const margin = end - first - (now.end - now.first);
      this.windows.want(Math.max(now.first - margin, 0), Math.min(now.end + margin, this.options.rowCount));
    }, FETCH_MS);
  }

  private paintRow(row: GridRow, index: number, range: Range): boolean {
    const found = this.windows.find(index);
    for (const { element: cell, column } of row.cells) {
      if (found === undefined) fillWaiting(cell);
      else fill(cell, found.block.types[column]!, found.block.value(found.at, column));
      const isSelected = isIn(range, index, column);
      cell.classList.toggle("selected", isSelected);
      cell.setAttribute("aria-selected", String(isSelected));
    }
    return found === undefined;
  }

  private paintHead(): void {
    const { sorted, columns } = this.options;
    for (const cell of this.head.cells as HeadCell[]) {
      const column = columns[cell.column]!;
      const way = sorted?.column === cell.column ? (sorted.descending ? "descending" : "ascending") : null;
      cell.show(column.name, column.type, way);
      cell.element.classList.toggle("selected", this.selection.focus.row === -1 && this.selection.focus.column === cell.column);
    }
  }

  private markFocus(): void {
    const { row, column } = this.selection.focus;
    this.root.querySelector(".focused")?.classList.remove("focused");
    this.root.querySelector(`#${this.id}-at`)?.removeAttribute("id");
    const shown = row < 0 ? this.head : this.pool.find(row);
    const cell = shown?.cells.find((one) => one.column === column)?.element;
    if (cell === undefined) return this.root.removeAttribute("aria-activedescendant");
    cell.classList.add("focused");
    cell.id = `${this.id}-at`;
    this.root.setAttribute("aria-activedescendant", cell.id);
  }

  private onKey(event: KeyboardEvent): void {
    const far = event.ctrlKey || event.metaKey;
    const { focus, anchor } = this.selection;
    const size = { rows: this.options.rowCount, columns: this.options.columns.length };
    if (event.altKey && (event.key === "ArrowLeft" || event.key === "ArrowRight")) {
      const width = this.options.layout.widths[focus.column] ?? 0;
      this.resize(focus.column, width + (event.key === "ArrowLeft" ? -16 : 16));
    } else if (event.altKey) {
      return;
    } else if (event.key === "Enter" && focus.row < 0) {
      this.openMenu(focus.column);
    } else if (event.key === "Enter") {
      this.options.opened(focus);
    } else if (far && event.key.toLowerCase() === "a") {
      this.select({ ...everything(size), focus: { row: size.rows - 1, column: size.columns - 1 } }, true);
      this.options.selected(this.selection);
    } else if (far && event.key.toLowerCase() === "c") {
      this.options.copy();
    } else if (event.key === " " && (far || event.shiftKey)) {
      this.select(
        far
          ? { anchor: { row: 0, column: anchor.column }, focus: { row: size.rows - 1, column: focus.column } }
          : { anchor: { row: anchor.row, column: 0 }, focus: { row: focus.row, column: size.columns - 1 } },
      );
    } else {
      const page = Math.max(Math.floor(this.extent().view / ROW_HEIGHT) - 1, 1);
      const to = moved(focus, event.key, far, page, size);
      if (to === null) return;
      this.select(event.shiftKey && to.row >= 0 ? { anchor: anchor.row < 0 ? to : anchor, focus: to } : single(to));
    }
    event.preventDefault();
  }

  private openMenu(column: number): void {
    const cell = this.head.cells.find((one) => one.column === column);
    const box = (cell?.element ?? this.root).getBoundingClientRect();
    this.options.menu(column, { left: box.left, bottom: box.bottom });
  }

  private cellAt(event: MouseEvent): Cell | null {
    const box = this.body.getBoundingClientRect();
    const row = Math.floor((event.clientY - box.top + this.place.top) / ROW_HEIGHT);
    const x = event.clientX - this.root.getBoundingClientRect().left;
    const frozenEnd = this.columns.begin(this.columns.frozenIn(this.root.clientWidth));
    const at = x < frozenEnd ? x : x + this.root.scrollLeft;
    if (at < this.columns.gutter || row >= this.options.rowCount) return null;
    let column = 0;
    while (column < this.columns.count - 1 && this.columns.begin(column + 1) <= at) column += 1;
    return at > this.columns.width ? null : { row, column };
  }

  private onPointer(event: PointerEvent): void {
    const target = event.target as HTMLElement;
    if (event.button !== 0 || event.pointerType === "touch") return;
    if (target.classList.contains("resize")) {
      this.dragged = Number(target.dataset.column);
    } else if (this.body.contains(target) && target.classList.contains("rownumber")) {
      const row = Number(target.textContent) - 1;
      this.select({ anchor: { row, column: 0 }, focus: { row, column: this.columns.count - 1 } });
      return this.focus();
    } else if (this.body.contains(target)) {
      const cell = this.cellAt(event);
      if (cell === null) return;
      this.dragged = "cells";
      this.select(event.shiftKey ? { anchor: this.selection.anchor, focus: cell } : single(cell));
    } else return;
    event.preventDefault();
    this.focus();
    const from = { x: event.clientX, width: this.options.layout.widths[Number(target.dataset.column)] ?? 0 };
    const move = (next: PointerEvent): void => {
      if (typeof this.dragged === "number") return this.resize(this.dragged, from.width + next.clientX - from.x);
      const cell = this.cellAt(next);
      if (cell !== null) this.select({ anchor: this.selection.anchor, focus: { ...cell, row: Math.max(cell.row, 0) } });
    };
    const end = (): void => {
      this.dragged = null;
      window.removeEventListener("pointermove", move);
      window.removeEventListener("pointerup", end);
      window.removeEventListener("pointercancel", end);
    };
    window.addEventListener("pointermove", move);
    window.addEventListener("pointerup", end);
    window.addEventListener("pointercancel", end);
  }

  private onDouble(event: MouseEvent): void {
    const target = event.target as HTMLElement;
    if (target.classList.contains("resize")) return this.fit(Number(target.dataset.column));
    const cell = this.body.contains(target) ? this.cellAt(event) : null;
    if (cell !== null) this.options.opened(cell);
  }

  private onHead(event: MouseEvent): void {
    const target = event.target as HTMLElement;
    const cell = target.closest<HTMLElement>("[role=columnheader]");
    if (cell === null || target.classList.contains("resize")) {
      const touched = this.body.contains(target) ? this.cellAt(event) : null;
      if (touched === null || (event as PointerEvent).pointerType !== "touch") return;
      const { focus } = this.selection;
      const isSecond = focus.row === touched.row && focus.column === touched.column;
      this.select(single(touched));
      if (isSecond) this.options.opened(touched); // a finger cannot double-click
      return;
    }
    const column = Number(cell.dataset.column);
    this.select(single({ row: -1, column }), true);
    if (target.closest("button") !== null) this.openMenu(column);
    else this.options.sort(column);
  }
}

function element(name: string): HTMLElement {
  const made = document.createElement("div");
  made.className = name;
  return made;
}
