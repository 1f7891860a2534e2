/**
 * Where the rows of a result are while one scrolls. Browsers limit an element to some 17 or 33 million pixels, which
 * is less than a million rows have. So beyond `CANVAS` the scrollbar is scaled: dragging it jumps, a small scroll moves
 * the rows by just as many pixels, and both ends are reached exactly. Pure.
 */

/** The greatest height of the scrolled element. */
export const CANVAS = 8_000_000;

/** A scroll by more pixels at once than this came from dragging the scrollbar: a swipe moves less. */
export const DRAG = 3_000;

export interface Extent {
  rows: number;
  rowHeight: number;
  /** The height that shows rows. */
  view: number;
}

export interface Place {
  /** The pixel of all rows that is at the top of the view. */
  top: number;
  /** The `scrollTop` of the element. */
  native: number;
}

const full = (extent: Extent): number => extent.rows * extent.rowHeight;

/** The height of the scrolled element. */
export const canvasOf = (extent: Extent): number => Math.max(Math.min(full(extent), CANVAS), 0);

/** The greatest `top`. */
export const lastTop = (extent: Extent): number => Math.max(full(extent) - extent.view, 0);

const lastNative = (extent: Extent): number => Math.max(canvasOf(extent) - extent.view, 0);

const isScaled = (extent: Extent): boolean => full(extent) > CANVAS;

/** At each end, as many pixels of the scrollbar are not scaled, so that a wheel always has a way to the last row. */
const endOf = (extent: Extent): number => Math.min(100_000, lastNative(extent) / 4);

/** Where the scrollbar belongs when `top` is at the top of the view. */
export function nativeOf(extent: Extent, top: number): number {
  const [most, mostNative, end] = [lastTop(extent), lastNative(extent), endOf(extent)];
  const at = Math.min(Math.max(top, 0), most);
  if (!isScaled(extent) || at <= end) return at;
  if (at >= most - end) return mostNative - (most - at);
  return end + ((at - end) * (mostNative - 2 * end)) / (most - 2 * end);
}

/** What is at the top of the view when the scrollbar was dragged to `native`. */
export function topOf(extent: Extent, native: number): number {
  const [most, mostNative, end] = [lastTop(extent), lastNative(extent), endOf(extent)];
  const at = Math.min(Math.max(native, 0), mostNative);
  if (!isScaled(extent) || at <= end) return at;
  if (at >= mostNative - end) return most - (mostNative - at);
  return end + ((at - end) * (most - 2 * end)) / (mostNative - 2 * end);
}

/** The place after the browser scrolled to `native`. If its `native` differs, the scrollbar has to be set to it. */
export function scrolled(extent: Extent, before: Place, native: number): Place {
  const moved = native - before.native;
  if (!isScaled(extent) || Math.abs(moved) > DRAG) return { top: topOf(extent, native), native };
  return moveBy(extent, before, moved);
}

/** The place after a wheel was turned by so many pixels; null where the browser scrolls right by itself. A busy browser
 * adds turns up, to more than `DRAG`, so they are told by their event and not by where the browser scrolled to. */
export const rolled = (extent: Extent, before: Place, pixels: number): Place | null =>
  isScaled(extent) ? moveBy(extent, before, pixels) : null;

function moveBy(extent: Extent, before: Place, pixels: number): Place {
  const native = Math.min(Math.max(before.native + pixels, 0), lastNative(extent));
  const top = Math.min(Math.max(before.top + pixels, 0), lastTop(extent));
  const [end, most] = [endOf(extent), lastNative(extent)];
  const isNearEnd = native < end || native > most - end || top === 0 || top === lastTop(extent);
  return { top, native: isNearEnd ? nativeOf(extent, top) : native };
}

/** The place with the scrollbar where it belongs: small scrolls left it a little off. */
export const settled = (extent: Extent, place: Place): Place => ({ top: place.top, native: nativeOf(extent, place.top) });

/** The place that shows `row` whole, moved as little as possible. */
export function showing(extent: Extent, place: Place, row: number): Place {
  const begin = row * extent.rowHeight;
  const lowest = begin + extent.rowHeight - extent.view;
  const top = Math.min(Math.max(begin < place.top ? begin : Math.max(place.top, lowest), 0), lastTop(extent));
  return { top, native: nativeOf(extent, top) };
}

/** The rows that are in the view, from `first` to before `end`, and by how many pixels the first is above it. */
export function rowsIn(extent: Extent, top: number): { first: number; end: number; above: number } {
  const first = Math.min(Math.floor(top / extent.rowHeight), Math.max(extent.rows - 1, 0));
  const end = Math.min(Math.ceil((top + extent.view) / extent.rowHeight), extent.rows);
  return { first, end: Math.max(end, first), above: top - first * extent.rowHeight };
}
