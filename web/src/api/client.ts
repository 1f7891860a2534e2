/** Requests to the service that served the page. The only module that calls `fetch`. */

import type { Completion, Info, Problem, Rows, ScanPlan, Statement, TableDefinition } from "./types";

/** A refused or failed request, with the problem that the service told. */
export class RequestFailed extends Error {
  constructor(readonly problem: Problem) {
    super(problem.detail);
  }
}

export interface RunRequest {
  sql: string;
  parameters?: Record<string, unknown> | unknown[];
  as_of?: string;
  engine?: "auto" | "duckdb" | "spark";
  timeout?: number;
  /** The client waits this many seconds for the end; then it asks again. */
  wait?: number;
  tags?: Record<string, string>;
}

export interface WindowRequest {
  offset: number;
  limit: number;
  order_by?: string;
  descending?: boolean;
}

export interface BlocksRequest {
  where?: string;
  column?: string;
  order?: "file" | "min";
  bins?: number;
  version?: number;
}

const ARROW = "application/vnd.apache.arrow.stream";

/** The token lives in memory; `rememberToken` in state/session.ts keeps it for the tab when the user asks for that. */
let token: string | null = null;

export function useToken(value: string | null): void {
  token = value;
}

type Listener = (problem: Problem | null) => void;

let listener: Listener = () => undefined;

/** Have a function called after each request: with its problem, or null when it was answered. */
export function onAnswer(called: Listener): void {
  listener = called;
}

function failed(problem: Problem): RequestFailed {
  listener(problem);
  return new RequestFailed(problem);
}

/** The service's address: the page's own, so that any path of a proxy stays before it. */
export function addressOf(path: string): URL {
  return new URL(path.replace(/^\//, ""), document.baseURI.split(/[?#]/)[0]);
}

export async function ask(path: string, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers);
  if (token !== null) headers.set("Authorization", `Bearer ${token}`);
  let answer: Response;
  try {
    answer = await fetch(addressOf(path), { ...init, headers });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw failed({
      type: "/errors#unreachable",
      title: "Unreachable",
      status: 0,
      code: "unreachable",
      detail: "The server does not answer.",
      hint: "Check that underlay serve still runs.",
      retryable: true,
    });
  }
  if (!answer.ok) throw failed(await problemOf(answer));
  listener(null);
  return answer;
}

async function problemOf(answer: Response): Promise<Problem> {
  const text = await answer.text();
  try {
    return JSON.parse(text) as Problem;
  } catch {
    const title = answer.statusText || "Error";
    return { type: "", title, status: answer.status, code: "unknown", detail: text.slice(0, 500), retryable: false };
  }
}

async function askJson<T>(path: string, init: RequestInit = {}): Promise<T> {
  return (await (await ask(path, init)).json()) as T;
}

function post(body: unknown, signal?: AbortSignal): RequestInit {
  const init: RequestInit = {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  };
  return signal === undefined ? init : { ...init, signal };
}

export function query(values: object): string {
  const given = Object.entries(values).filter(([, value]) => value !== undefined && value !== null);
  const text = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return text === "" ? "" : `?${text}`;
}

const named = (table: string): string => encodeURIComponent(table);

export const info = (): Promise<Info> => askJson("/v1/info");

/** Start a statement whose rows are kept. `limit: 0`: the grid fetches windows of Arrow, which round nothing. */
export const run = (request: RunRequest, signal?: AbortSignal): Promise<Statement> =>
  askJson("/v1/statements", post({ limit: 0, ...request }, signal));

/** The statement's state; the answer comes when it ends, or after `wait` seconds. */
export const statement = (id: string, wait = 0, signal?: AbortSignal): Promise<Statement> =>
  askJson(`/v1/statements/${id}${query({ wait })}`, signal === undefined ? {} : { signal });

/** Cancel the statement and forget its rows. */
export const forget = async (id: string, isLast = false): Promise<void> => {
  await ask(`/v1/statements/${id}`, { method: "DELETE", keepalive: isLast }); // kept alive: the page may be closing
};

/** A window of the kept rows as an Arrow stream. */
export async function windowOf(id: string, window: WindowRequest, signal?: AbortSignal): Promise<Uint8Array> {
  const init: RequestInit = { headers: { Accept: ARROW } };
  const answer = await ask(`/v1/statements/${id}/rows${query(window)}`, signal ? { ...init, signal } : init);
  return new Uint8Array(await answer.arrayBuffer());
}

/** A URL that downloads all kept rows once, without a token in it. */
export async function downloadUrl(id: string, format: string): Promise<URL> {
  const { url } = await askJson<{ url: string }>(`/v1/statements/${id}/links${query({ format })}`, { method: "POST" });
  return addressOf(url.slice(url.indexOf("/v1/")));
}

/** The block map of one scan of a statement, as an Arrow stream. */
export async function statementBlocks(
  id: string,
  scan: number,
  request: BlocksRequest,
  signal?: AbortSignal,
): Promise<Uint8Array> {
  const init: RequestInit = { headers: { Accept: ARROW } };
  const path = `/v1/statements/${id}/blocks${query({ scan, ...request })}`;
  return new Uint8Array(await (await ask(path, signal ? { ...init, signal } : init)).arrayBuffer());
}

/** The block map of a table, for a condition if there is one, as an Arrow stream. */
export async function tableBlocks(table: string, request: BlocksRequest, signal?: AbortSignal): Promise<Uint8Array> {
  const init: RequestInit = { headers: { Accept: ARROW } };
  const path = `/v1/tables/${named(table)}/blocks${query(request)}`;
  return new Uint8Array(await (await ask(path, signal ? { ...init, signal } : init)).arrayBuffer());
}

/** What a query would read. */
export const plan = (request: object): Promise<{ plans: ScanPlan[] }> => askJson("/v1/plan", post(request));

export const tables = (): Promise<{ tables: { name: string; is_writable: boolean }[] }> => askJson("/v1/tables");

export const table = (name: string, at: { version?: number } = {}): Promise<TableDefinition> =>
  askJson(`/v1/tables/${named(name)}${query(at)}`);

/** `columns`, `versions`, `diff`, `files`, `sources`, `jobs` or `runs` of a table. */
export const tableRows = (name: string, part: string, values: object = {}): Promise<Rows> =>
  askJson(`/v1/tables/${named(name)}/${part}${query(values)}`);

export const health = (name: string): Promise<Record<string, unknown>> => askJson(`/v1/tables/${named(name)}/health`);

export const completion = (names?: string[]): Promise<Completion> =>
  askJson(`/v1/completion${names === undefined ? "" : query({ tables: names.join(",") })}`);
