/** Where each cell of the map is, in pixels of the device, and where the arrow keys lead. */

export interface Layout {
  count: number;
  /** The side of a cell, its gap included. */
  size: number;
  columns: number;
  rows: number;
  width: number;
  height: number;
}

const SIZES = [22, 20, 18, 16, 14, 12, 10, 8, 7, 6, 5, 4, 3, 2, 1];

/** The largest cells with which the map is not higher than `most`; cells of one pixel may be. */
export function layoutOf(count: number, width: number, most: number, least = 1): Layout {
  const across = Math.max(1, Math.floor(width));
  const size = SIZES.find((one) => heightOf(count, across, one) <= most && one >= least) ?? Math.max(1, least);
  const columns = Math.max(1, Math.min(Math.floor(across / size), Math.max(1, count)));
  const rows = Math.ceil(count / columns);
  return { count, size, columns, rows, width: columns * size, height: rows * size };
}

const heightOf = (count: number, width: number, size: number): number =>
  size > width ? Infinity : Math.ceil(count / Math.floor(width / size)) * size;

/** The cell at a place; null outside of all. */
export function cellAt(layout: Layout, x: number, y: number): number | null {
  const column = Math.floor(x / layout.size);
  const row = Math.floor(y / layout.size);
  if (column < 0 || row < 0 || column >= layout.columns) return null;
  const at = row * layout.columns + column;
  return at < layout.count ? at : null;
}

export function placeOf(layout: Layout, at: number): { x: number; y: number } {
  return { x: (at % layout.columns) * layout.size, y: Math.floor(at / layout.columns) * layout.size };
}

/** The cell to which a key leads from another; null for keys that lead nowhere. */
export function moved(layout: Layout, at: number, key: string, isControl: boolean): number | null {
  const { columns, count } = layout;
  const begin = at - (at % columns);
  const last = count - 1;
  const page = 10 * columns;
  switch (key) {
    case "ArrowRight":
      return Math.min(at + 1, last);
    case "ArrowLeft":
      return Math.max(at - 1, 0);
    case "ArrowDown":
      return at + columns <= last ? at + columns : at;
    case "ArrowUp":
      return at - columns >= 0 ? at - columns : at;
    case "PageDown":
      return Math.min(at + page, at + Math.floor((last - at) / columns) * columns);
    case "PageUp":
      return Math.max(at - page, at % columns);
    case "Home":
      return isControl ? 0 : begin;
    case "End":
      return isControl ? last : Math.min(begin + columns - 1, last);
    default:
      return null;
  }
}

/** The next cell with this verdict after `at`, going around; null if there is none. */
export function nextOf(verdicts: Uint8Array, verdict: number, at: number, step: 1 | -1): number | null {
  const count = verdicts.length;
  for (let passed = 1; passed <= count; passed += 1) {
    const place = (((at + step * passed) % count) + count) % count;
    if (verdicts[place] === verdict) return place;
  }
  return null;
}
