/** The block map: each block of a table as a cell, coloured by what the plan did with it. */

import type { ScanPlan } from "../api/types";

/** The scans of a statement that ran, or a table with a condition. */
export type BlockSource =
  | { statement: string; plans: ScanPlan[] }
  | { table: string; version?: number; where?: string };

export function BlockMap({ source }: { source: BlockSource }) {
  return <section aria-label="Block map">{"table" in source ? source.table : source.statement}</section>;
}
