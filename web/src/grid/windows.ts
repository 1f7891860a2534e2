/** Windows of a result's rows: fetched when they are looked at, kept while there is room, dropped when scrolled past. */

import type { RowBlock } from "./arrow";

export type FetchRows = (offset: number, limit: number, signal: AbortSignal) => Promise<RowBlock>;

const MOST_ROWS = 1_000;
const WINDOW_BYTES = 4 << 20;
const KEPT_BYTES = 64 << 20;
const MOST_WINDOWS = 64;

/** The rows of a window: 1,000, fewer if rows are large. */
export function windowRows(rowCount: number, resultBytes: number): number {
  const rowBytes = rowCount > 0 ? Math.max(resultBytes / rowCount, 1) : 1;
  return Math.max(1, Math.min(MOST_ROWS, Math.floor(WINDOW_BYTES / rowBytes)));
}

export class Windows {
  private readonly kept = new Map<number, RowBlock>();
  private readonly coming = new Map<number, { stop: AbortController; block: Promise<RowBlock> }>();
  private readonly mostKept: number;
  readonly size: number;

  constructor(
    private readonly rowCount: number,
    resultBytes: number,
    private readonly fetchRows: FetchRows,
    private readonly arrived: () => void,
    private readonly failed: (error: unknown) => void,
  ) {
    this.size = windowRows(rowCount, resultBytes);
    const bytes = Math.max((resultBytes / Math.max(rowCount, 1)) * this.size, 1);
    this.mostKept = Math.max(4, Math.min(MOST_WINDOWS, Math.floor(KEPT_BYTES / bytes)));
  }

  /** The rows that have `row`, and its place in them; undefined until they are here. */
  find(row: number): { block: RowBlock; at: number } | undefined {
    const window = Math.floor(row / this.size);
    const block = this.kept.get(window);
    if (block === undefined) return undefined;
    this.kept.delete(window); // the newest is last
    this.kept.set(window, block);
    return { block, at: row - window * this.size };
  }

  /** Fetch what shows the rows from `first` to before `end`; whatever else is on its way is aborted. */
  want(first: number, end: number): void {
    const [from, to] = [Math.floor(first / this.size), Math.floor(Math.max(end - 1, first) / this.size)];
    for (const [window, { stop }] of this.coming) {
      if (window < from - 1 || window > to + 1) {
        this.coming.delete(window);
        stop.abort();
      }
    }
    for (let window = from; window <= to; window += 1) {
      if (!this.kept.has(window)) this.start(window).catch(this.failed);
    }
  }

  /** The rows from `first` to before `end`, window by window; what was fetched for that is kept as long as others are. */
  async *read(first: number, end: number, signal: AbortSignal): AsyncGenerator<{ block: RowBlock; from: number; to: number; row: number }> {
    for (let row = first; row < end; ) {
      const window = Math.floor(row / this.size);
      const begin = window * this.size;
      const block = this.kept.get(window) ?? (await this.fetchRows(begin, this.size, signal));
      const to = Math.min(end - begin, block.length);
      yield { block, from: row - begin, to, row };
      row = begin + this.size;
    }
  }

  /** Nothing is fetched any more. */
  stop(): void {
    for (const { stop } of this.coming.values()) stop.abort();
    this.coming.clear();
    this.kept.clear();
  }

  private start(window: number): Promise<unknown> {
    const known = this.coming.get(window);
    if (known !== undefined) return Promise.resolve();
    const stop = new AbortController();
    const offset = window * this.size;
    const block = this.fetchRows(offset, Math.min(this.size, this.rowCount - offset), stop.signal);
    this.coming.set(window, { stop, block });
    return block
      .then((found) => {
        if (this.coming.get(window)?.stop === stop) this.keep(window, found);
      })
      .catch((error: unknown) => {
        if (stop.signal.aborted) return;
        this.coming.delete(window);
        throw error;
      });
  }

  private keep(window: number, block: RowBlock): void {
    this.coming.delete(window);
    this.kept.set(window, block);
    for (const oldest of this.kept.keys()) {
      if (this.kept.size <= this.mostKept) break;
      this.kept.delete(oldest);
    }
    this.arrived();
  }
}
