/** Where columns are: their widths, which are frozen, and which can be seen. */

import type { RowBlock } from "./arrow";
import { textOf } from "./values";

export const LEAST_WIDTH = 48;
export const MOST_WIDTH = 1_200;
const CHARACTER = 7.7;
const PADDING = 22;
const SAMPLED_ROWS = 100;
const FITTED_WIDTH = 380;

/** What the user did to the columns; kept when the rows are sorted. */
export interface ColumnLayout {
  widths: number[];
  /** So many columns at the left stay when one scrolls. */
  frozen: number;
}

/** The cells that a text takes in a fixed-width font. */
export function cellsOf(text: string): number {
  let cells = 0;
  for (const character of text) cells += (character.codePointAt(0) ?? 0) > 0x2e7f ? 2 : 1;
  return cells;
}

/** The width that shows the name and a sample of the values. */
export function fittedWidth(name: string, type: string, column: number, sample: RowBlock | null): number {
  let cells = Math.max(cellsOf(name.slice(0, 60)) + 4, cellsOf(type.slice(0, 24)) * 0.85 + 2);
  const rows = Math.min(sample?.length ?? 0, SAMPLED_ROWS);
  for (let row = 0; sample !== null && row < rows; row += 1) {
    const value = sample.value(row, column);
    if (value === null) continue;
    const text = typeof value === "string" ? value.slice(0, 80) : textOf(sample.types[column]!, value).slice(0, 80);
    cells = Math.max(cells, cellsOf(text));
  }
  return Math.round(Math.min(Math.max(cells * CHARACTER + PADDING, 64), FITTED_WIDTH));
}

export class Columns {
  /** Where each column begins; the last is the width of all. */
  private begins: number[] = [];

  constructor(
    readonly layout: ColumnLayout,
    /** The width of the row numbers. */
    readonly gutter: number,
  ) {
    this.measure();
  }

  get count(): number {
    return this.layout.widths.length;
  }

  get width(): number {
    return this.begins[this.count] ?? this.gutter;
  }

  begin(column: number): number {
    return this.begins[column] ?? this.width;
  }

  resize(column: number, width: number): void {
    this.layout.widths[column] = Math.round(Math.min(Math.max(width, LEAST_WIDTH), MOST_WIDTH));
    this.measure();
  }

  /** So many columns are frozen that half of the view is left for the others. */
  frozenIn(view: number): number {
    let frozen = this.layout.frozen;
    while (frozen > 0 && this.begin(frozen) > view / 2) frozen -= 1;
    return frozen;
  }

  /** The columns that are seen beside the frozen ones, from the first to before the last. */
  seen(left: number, view: number): { first: number; end: number } {
    const frozen = this.frozenIn(view);
    const from = left + this.begin(frozen);
    let first = frozen;
    while (first < this.count - 1 && this.begin(first + 1) <= from) first += 1;
    let end = first;
    while (end < this.count && this.begin(end) < left + view) end += 1;
    return { first, end };
  }

  /** Where to scroll so that the column is seen whole. */
  leftFor(column: number, left: number, view: number): number {
    const frozen = this.frozenIn(view);
    if (column < frozen) return left;
    const [begin, end] = [this.begin(column), this.begin(column + 1)];
    if (begin < left + this.begin(frozen)) return begin - this.begin(frozen);
    return end > left + view ? Math.min(end - view, begin - this.begin(frozen)) : left;
  }

  private measure(): void {
    let at = this.gutter;
    this.begins = [];
    for (const width of this.layout.widths) {
      this.begins.push(at);
      at += width;
    }
    this.begins.push(at);
  }
}
