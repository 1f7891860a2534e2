/** The elements of the grid's rows and cells, used again and again. */

import type { Columns } from "./columns";
import { HEAD_HEIGHT, ROW_HEIGHT } from "./heights";

export interface ShownCell {
  element: HTMLElement;
  column: number;
}

/** A cell of the row of names: name, type, order, a menu and a handle. */
export class HeadCell implements ShownCell {
  readonly element = made("columnheader", "cell head");
  column = -1;
  private readonly name = document.createElement("span");
  private readonly type = document.createElement("span");
  private readonly order = document.createElement("span");
  private readonly menu = document.createElement("button");
  private readonly handle = document.createElement("span");

  constructor() {
    this.name.className = "name";
    this.name.dir = "auto";
    this.type.className = "type";
    this.order.className = "order";
    this.handle.className = "resize";
    this.menu.className = "more";
    this.menu.type = "button";
    this.menu.tabIndex = -1;
    this.menu.textContent = "⋮";
    this.element.append(this.name, this.order, this.type, this.menu, this.handle);
  }

  show(name: string, type: string, way: "ascending" | "descending" | null): void {
    if (this.name.textContent !== name) this.name.textContent = name;
    if (this.type.textContent !== type) this.type.textContent = type;
    this.element.title = `${name}\n${type}\nClick to sort`;
    this.menu.ariaLabel = `Menu of column ${name}`;
    this.order.textContent = way === null ? "" : way === "ascending" ? "▲" : "▼";
    this.element.setAttribute("aria-sort", way ?? "none");
    this.element.dataset.column = this.handle.dataset.column = String(this.column);
  }
}

export class GridRow {
  readonly element = made("row", "row");
  cells: ShownCell[] = [];
  private readonly number: HTMLElement;
  private readonly space = made("none", "space");
  private layout = "";

  constructor(private readonly isHead: boolean) {
    this.number = made(isHead ? "columnheader" : "rowheader", isHead ? "cell head rownumber" : "cell rownumber");
    this.number.setAttribute("aria-colindex", "1");
    if (isHead) {
      this.number.textContent = "#";
      this.number.setAttribute("aria-label", "Row");
      this.element.setAttribute("aria-rowindex", "1");
      this.element.classList.add("heads");
    }
    this.element.style.height = `${isHead ? HEAD_HEIGHT : ROW_HEIGHT}px`;
    this.element.append(this.number);
  }

  /** Have a cell for each frozen and each seen column. */
  lay(columns: Columns, frozen: number, seen: { first: number; end: number }): void {
    const wanted = [...span(0, frozen), ...span(Math.max(seen.first, frozen), seen.end)];
    const layout = `${columns.width};${wanted.map((column) => `${column}:${columns.begin(column)}`).join()};${frozen}`;
    if (layout === this.layout) return;
    this.layout = layout;
    while (this.cells.length > wanted.length) this.cells.pop()!.element.remove();
    while (this.cells.length < wanted.length) this.cells.push(this.newCell());
    this.element.style.width = `${columns.width}px`;
    this.number.style.width = `${columns.gutter}px`;
    this.space.style.width = `${columns.begin(Math.max(seen.first, frozen)) - columns.begin(frozen)}px`;
    wanted.forEach((column, index) => {
      const cell = this.cells[index]!;
      const { style, classList } = cell.element;
      const isFrozen = column < frozen;
      cell.column = column;
      cell.element.setAttribute("aria-colindex", String(column + 2));
      style.width = `${columns.begin(column + 1) - columns.begin(column)}px`;
      style.left = isFrozen ? `${columns.begin(column)}px` : "";
      classList.toggle("frozen", isFrozen);
      classList.toggle("edge", isFrozen && column === frozen - 1);
    });
    this.element.replaceChildren(
      this.number,
      ...this.cells.slice(0, frozen).map((cell) => cell.element),
      this.space,
      ...this.cells.slice(frozen).map((cell) => cell.element),
    );
  }

  move(index: number, top: number): void {
    this.element.style.transform = `translateY(${top}px)`;
    this.element.setAttribute("aria-rowindex", String(index + 2));
    this.element.classList.toggle("odd", index % 2 === 1);
    const text = String(index + 1);
    if (this.number.textContent !== text) this.number.textContent = text;
  }

  private newCell(): ShownCell {
    if (this.isHead) return new HeadCell();
    const element = made("gridcell", "cell");
    element.dir = "auto";
    return { element, column: -1 };
  }
}

export class RowPool {
  private shown = new Map<number, GridRow>();

  constructor(private readonly body: HTMLElement) {}

  find(index: number): GridRow | undefined {
    return this.shown.get(index);
  }

  /** Have an element for each of the rows; those that went out of sight are used for those that came into it. */
  show(first: number, end: number, paint: (row: GridRow, index: number) => boolean): boolean {
    const next = new Map<number, GridRow>();
    const free: GridRow[] = [];
    for (const [index, row] of this.shown) {
      if (index >= first && index < end) next.set(index, row);
      else free.push(row);
    }
    let isWaiting = false;
    for (let index = first; index < end; index += 1) {
      let row = next.get(index);
      if (row === undefined) {
        row = free.pop() ?? new GridRow(false);
        next.set(index, row);
        if (!row.element.isConnected) this.body.append(row.element);
      }
      if (paint(row, index)) isWaiting = true;
    }
    for (const row of free) row.element.remove();
    this.shown = next;
    return isWaiting;
  }
}

const span = (first: number, end: number): number[] => Array.from({ length: Math.max(end - first, 0) }, (_, at) => first + at);

function made(role: string, name: string): HTMLElement {
  const element = document.createElement("div");
  element.setAttribute("role", role);
  element.className = name;
  return element;
}
