/** Reads what is selected: for the clipboard, for its summary, and to find a text in the rows. */

import type { DataType } from "@uwdata/flechette";

import { previewOf } from "../grid/cells";
import type { Cell, Range } from "../grid/selection";
import type { Windows } from "../grid/windows";
import type { CopiedRows } from "./copy";
import { type Summary, Summing } from "./summary";

/** More rows are not put on the clipboard, nor summed: a download has them all. */
export const MOST_ROWS = 100_000;
const MOST_CELLS = 1_000_000;
const FOUND_ROWS = 5_000;

/** The rows of a range that are copied or summed. */
export const rowsRead = (range: Range): number => {
  const columns = Math.max(range.endColumn - range.firstColumn, 1);
  return Math.min(range.endRow - range.firstRow, MOST_ROWS, Math.ceil(MOST_CELLS / columns));
};

export async function readRange(windows: Windows, range: Range, names: string[], signal: AbortSignal): Promise<CopiedRows> {
  const { firstRow, firstColumn, endColumn } = range;
  const found: CopiedRows = { names: names.slice(firstColumn, endColumn), types: [], rows: [] };
  for await (const { block, from, to } of windows.read(firstRow, firstRow + rowsRead(range), signal)) {
    found.types = block.types.slice(firstColumn, endColumn);
    for (let row = from; row < to; row += 1) {
      found.rows.push(found.types.map((_, at) => block.value(row, firstColumn + at)));
    }
  }
  return found;
}

export async function summarise(windows: Windows, range: Range, signal: AbortSignal): Promise<Summary | null> {
  const { firstRow, firstColumn, endColumn } = range;
  let summing: Summing | null = null;
  for await (const { block, from, to } of windows.read(firstRow, firstRow + rowsRead(range), signal)) {
    if (signal.aborted) return null;
    summing ??= new Summing(block.types.slice(firstColumn, endColumn));
    for (let row = from; row < to; row += 1) {
      for (let column = firstColumn; column < endColumn; column += 1) summing.add(block.value(row, column), column - firstColumn);
    }
  }
  return summing?.summary() ?? null;
}

/** The next cell after `after` whose text has the words, beginning again at the top; null if there is none. */
export async function findNext(
  windows: Windows,
  rowCount: number,
  after: Cell,
  text: string,
  signal: AbortSignal,
  progress: (rows: number) => void,
): Promise<Cell | null> {
  const wanted = text.toLowerCase();
  const begin = Math.max(after.row, 0);
  let searched = 0;
  for (const [first, end] of [
    [begin, rowCount],
    [0, Math.min(begin + 1, rowCount)],
  ] as const) {
    for (let from = first; from < end; from += FOUND_ROWS) {
      for await (const { block, from: row, to, row: at } of windows.read(from, Math.min(from + FOUND_ROWS, end), signal)) {
        for (let index = row; index < to; index += 1) {
          const place = at + index - row;
          const isFirst = first === begin && place === begin;
          const column = columnWith(block.types, (one) => block.value(index, one), wanted, isFirst ? after.column + 1 : 0);
          if (column !== null) return { row: place, column };
        }
        searched += to - row;
        progress(searched);
      }
    }
  }
  return null;
}

function columnWith(types: DataType[], value: (column: number) => ReturnType<import("../grid/arrow").RowBlock["value"]>, wanted: string, first: number): number | null {
  for (let column = first; column < types.length; column += 1) {
    const found = value(column);
    if (found === null) continue;
    const text = typeof found === "string" ? found : previewOf(types[column]!, found);
    if (text.toLowerCase().includes(wanted)) return column;
  }
  return null;
}
