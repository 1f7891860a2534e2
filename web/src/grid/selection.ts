/** The cell that has the focus, and the cells that are selected with it. Pure. */

export interface Cell {
  /** -1 is the row of names. */
  row: number;
  column: number;
}

/** A rectangle: from the cell where it was begun to the cell that has the focus. */
export interface Selection {
  anchor: Cell;
  focus: Cell;
}

/** Half open. */
export interface Range {
  firstRow: number;
  endRow: number;
  firstColumn: number;
  endColumn: number;
}

export interface Size {
  rows: number;
  columns: number;
}

export const single = (cell: Cell): Selection => ({ anchor: cell, focus: cell });

export function rangeOf({ anchor, focus }: Selection): Range {
  return {
    firstRow: Math.max(Math.min(anchor.row, focus.row), 0),
    endRow: Math.max(anchor.row, focus.row) + 1,
    firstColumn: Math.min(anchor.column, focus.column),
    endColumn: Math.max(anchor.column, focus.column) + 1,
  };
}

export const cellsIn = (range: Range): number =>
  Math.max(range.endRow - range.firstRow, 0) * Math.max(range.endColumn - range.firstColumn, 0);

export const isIn = (range: Range, row: number, column: number): boolean =>
  row >= range.firstRow && row < range.endRow && column >= range.firstColumn && column < range.endColumn;

export const everything = ({ rows, columns }: Size): Selection => ({
  anchor: { row: 0, column: 0 },
  focus: { row: Math.max(rows - 1, 0), column: Math.max(columns - 1, 0) },
});

/** Where a key takes the focus, by the pattern of ARIA's grid; null for a key that does not move it. */
export function moved(cell: Cell, key: string, isFar: boolean, page: number, size: Size): Cell | null {
  const { row, column } = cell;
  const to = (wantedRow: number, wantedColumn: number): Cell => ({
    row: Math.max(Math.min(wantedRow, size.rows - 1), -1),
    column: Math.max(Math.min(wantedColumn, size.columns - 1), 0),
  });
  switch (key) {
    case "ArrowUp":
      return to(isFar ? Math.min(row, 0) : row - 1, column);
    case "ArrowDown":
      return to(isFar ? size.rows - 1 : row + 1, column);
    case "ArrowLeft":
      return to(row, isFar ? 0 : column - 1);
    case "ArrowRight":
      return to(row, isFar ? size.columns - 1 : column + 1);
    case "PageUp":
      return to(Math.max(row - page, Math.min(row, 0)), column);
    case "PageDown":
      return to(row + page, column);
    case "Home":
      return to(isFar ? 0 : row, 0);
    case "End":
      return to(isFar ? size.rows - 1 : row, size.columns - 1);
    default:
      return null;
  }
}
