/** What the service sends (`/openapi.json`), as the page uses it. */

export interface Column {
  name: string;
  type: string;
  nullable?: boolean;
  encoding?: "base64";
  /** Integers of this column exceed 2^53: JSON would round them in a browser, Arrow does not. */
  beyond_2_53?: boolean;
}

export interface Position {
  /** From 1. */
  line: number;
  column: number;
  /** In code points of the text as it was sent; a JavaScript index counts UTF-16 units. */
  offset: number;
  length: number;
}

/** RFC 9457. */
export interface Problem {
  type: string;
  title: string;
  status: number;
  code: string;
  detail: string;
  hint?: string;
  statement?: string;
  retryable: boolean;
  position?: Position;
}

export interface PlanStep {
  level: "segment" | "partition" | "file" | "block" | "deleted" | "bloom";
  predicate: string | null;
  reason: string;
  files: number;
  blocks: number;
  data_bytes: number;
}

export interface PlanTotals {
  files: number;
  blocks: number;
  rows: number;
  data_bytes: number;
}

/** One scan of a statement; a self-join has two. */
export interface ScanPlan {
  scan: number;
  table: string;
  version: number;
  columns: string[];
  predicate: string | null;
  filter: string | null;
  total: PlanTotals;
  kept: PlanTotals & { fetch_bytes: number; full_matches: number };
  steps: PlanStep[];
}

export type StatementState = "queued" | "running" | "finished" | "failed" | "cancelled";

export interface Statement {
  id: string;
  state: StatementState;
  engine: "duckdb" | "spark";
  engine_reason?: string;
  created: string;
  columns?: Column[];
  row_count: number;
  truncated: boolean;
  tables: { name: string; version: number }[];
  etag?: string;
  stats: Record<string, number>;
  progress?: Record<string, number>;
  plans?: ScanPlan[];
  tags: Record<string, string>;
  error?: Problem;
}

export interface Info {
  version: string;
  engines: Record<string, string>;
  engine: "auto" | "duckdb" | "spark";
  formats: Record<string, string>;
  is_writable: boolean;
  limits: Record<string, number>;
  caller: { name: string; read: string[]; write: string[]; admin: boolean; expires: string | null };
}

export interface TableDefinition {
  name: string;
  version: number;
  revision: string;
  committed: string;
  operation: string;
  columns: Column[];
  row_count: number;
  file_count: number;
  data_bytes: number;
  key: string[];
  sort_by: string[];
  partition_by: string[];
  comment: string | null;
  checks: Record<string, string>;
  properties: Record<string, string>;
  tags: Record<string, number>;
  is_writable: boolean;
}

/** Rows as `/v1/tables/{table}/versions`, `files`, `columns`, `sources` and others send them, with facts beside them. */
export interface Rows {
  columns: Column[];
  rows: unknown[][];
  row_count: number;
  [fact: string]: unknown;
}

/** What a text can be completed with. With `tables=` only `columns`, by table. */
export interface Completion {
  keywords?: string[];
  functions?: FunctionSignature[];
  tables?: string[];
  views?: string[];
  columns?: Record<string, Column[]>;
}

export interface FunctionSignature {
  name: string;
  kind: string;
  /** The names of the parameters, for each way to call it. */
  parameters: string[][];
  description: string | null;
}
