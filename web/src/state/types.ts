/** What the panes share. */

import type { Problem, Statement } from "../api/types";

export type EngineChoice = "auto" | "duckdb" | "spark";

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
  /** The time as of which tables were read, if it was set. */
  asOf?: string | null;
}

/** A tab, as the browser keeps it. */
export interface Tab {
  id: string;
  kind: "sql" | "table";
  title: string;
  /** The text of a tab of SQL. */
  text: string;
  /** The table that a tab of a table shows, and its version if it is not the newest. */
  table?: string;
  version?: number | null;
  order: number;
  engine: EngineChoice;
  /** Read every table as of this time, in ISO 8601. */
  asOf: string | null;
  /** By name, as they were typed, and how they are sent. */
  parameters: Record<string, ParameterText>;
  closed?: number;
}

export interface ParameterText {
  text: string;
  type: ParameterType;
}

export type ParameterType = "automatic" | "string" | "bigint" | "double" | "decimal" | "boolean" | "date" | "timestamp" | "null";

/** A statement that ran, as the history keeps it. */
export interface PastRun {
  id: string;
  /** Milliseconds since 1970. */
  at: number;
  sql: string;
  state: "finished" | "failed" | "cancelled";
  milliseconds: number;
  rows: number;
  engine: string;
  error: string | null;
  asOf: string | null;
}
