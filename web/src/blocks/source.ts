/** Where the blocks and totals of a map come from: a scan that ran, or a plan made now. */

import { type BlocksRequest, plan as askPlan, statementBlocks, tableBlocks } from "../api/client";
import type { ScanPlan } from "../api/types";
import { Blocks } from "./answer";

/** Beyond as many, the service counts neighbours together. */
export const MOST_CELLS = 1_000_000;
const BINS = 100_000;

/** One map: of a scan of a statement, at the version that it read, or of a table with a condition at any version. */
export interface MapOf {
  table: string;
  version: number | null;
  where: string | null;
  /** The columns whose bytes count; null for all. */
  columns: string[] | null;
  /** The scan that ran; null for a plan made now. */
  ran: { statement: string; plan: ScanPlan } | null;
  /** The statement answered without this table's blocks. */
  isUnasked?: boolean;
}

export interface Shown {
  order: "file" | "min";
  /** The column with bounds; null for the service's choice. */
  column: string | null;
}

export interface MapAnswer {
  plan: ScanPlan;
  blocks: Blocks;
}

/** The same table at another version, under the condition of the scan. */
export function atVersion(map: MapOf, version: number): MapOf {
  if (map.version === version) return map;
  const { ran } = map;
  if (ran === null) return { ...map, version };
  return { ...map, version, ran: null, where: conditionOf(ran.plan), columns: ran.plan.columns };
}

/** What a scan pushed down, as a condition; null for one that reads everything. */
export function conditionOf(plan: ScanPlan): string | null {
  const text = plan.predicate;
  return text === null || text === "" || text.toLowerCase() === "true" ? null : text;
}

export async function load(map: MapOf, shown: Shown, signal: AbortSignal): Promise<MapAnswer> {
  const plan = map.ran?.plan ?? (await planOf(map));
  signal.throwIfAborted();
  const asked: BlocksRequest & { columns?: string } = { order: shown.order };
  if (shown.column !== null) asked.column = shown.column;
  if (plan.total.blocks > MOST_CELLS) asked.bins = BINS;
  if (map.ran !== null) {
    const bytes = await statementBlocks(map.ran.statement, map.ran.plan.scan, asked, signal);
    return { plan, blocks: new Blocks(bytes) };
  }
  asked.version = plan.version;
  if (map.where !== null) asked.where = map.where;
  if (map.columns !== null && map.columns.length > 0) asked.columns = map.columns.join(",");
  const bytes = await tableBlocks(map.table, asked, signal);
  return { plan, blocks: new Blocks(bytes, { areUnasked: map.isUnasked ?? false }) };
}

async function planOf(map: MapOf): Promise<ScanPlan> {
  const asked: Record<string, unknown> = { table: map.table };
  if (map.where !== null) asked.where = map.where;
  if (map.columns !== null && map.columns.length > 0) asked.columns = map.columns;
  if (map.version !== null) asked.version = map.version;
  const { plans } = await askPlan(asked);
  return plans[0]!;
}
