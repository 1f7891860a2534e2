/** What the panes share. */

import type { Problem, Statement } from "../api/types";

/** One run of a statement, as the results, the chart and the block map see it. */
export interface Run {
  /** The text that ran, as it was sent. */
  sql: string;
  /** Where that text begins in the tab's text. */
  from: number;
  /** Milliseconds of `performance.now()`. */
  started: number;
  ended: number | null;
  /** The service's newest answer; null until the first one. */
  statement: Statement | null;
  /** What the service refused or what failed later. */
  problem: Problem | null;
  /** When Stop was pressed, as `started`. */
  stopping: number | null;
}
