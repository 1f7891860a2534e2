/** What the sections of a table's page share: loading, problems, tables of rows, and names of SQL. */

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";

import { RequestFailed } from "../api/client";

export interface Asked<T> {
  found: T | null;
  problem: string | null;
  again: () => void;
}

/** What a request answers; asked again when `keys` change. The old answer stays until the new one is there. */
export function useAsked<T>(ask: () => Promise<T>, keys: unknown[]): Asked<T> {
  const [found, setFound] = useState<T | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    let isOld = false;
    ask().then(
      (answer) => {
        if (isOld) return;
        setFound(answer);
        setProblem(null);
      },
      (error: unknown) => {
        if (isOld) return;
        setFound(null);
        setProblem(textOfError(error));
      },
    );
    return () => {
      isOld = true;
    };
  }, [...keys, turn]);
  return { found, problem, again: () => setTurn((one) => one + 1) };
}

export const textOfError = (error: unknown): string =>
  error instanceof RequestFailed ? `${error.problem.detail} ${error.problem.hint ?? ""}`.trim() : String(error);

/** Shows an answer when it is there, or why it is not. */
export function Awaited<T>({ asked, children }: { asked: Asked<T>; children: (found: T) => ComponentChildren }) {
  if (asked.problem !== null) {
    return (
      <div class="table-problem" role="alert">
        <p>{asked.problem}</p>
        <button type="button" onClick={asked.again}>
          Try again
        </button>
      </div>
    );
  }
  return <>{asked.found === null ? <p class="table-weak">Loading…</p> : children(asked.found)}</>;
}

export interface Cells {
  key: string;
  cells: ComponentChildren[];
}

export interface HeadCell {
  text: string;
  isNumber?: boolean;
  title?: string;
}

/** A table that scrolls sideways in its own frame. */
export function DataTable({ label, head, rows }: { label: string; head: HeadCell[]; rows: Cells[] }) {
  return (
    <div class="table-scroll" tabIndex={0} role="group" aria-label={`${label}, scrolls sideways`}>
      <table class="table-rows">
        <thead>
          <tr>
            {head.map((cell) => (
              <th key={cell.text} scope="col" class={cell.isNumber === true ? "is-number" : ""} title={cell.title}>
                {cell.text}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(({ key, cells }) => (
            <tr key={key}>
              {cells.map((cell, at) => (
                <td key={at} class={head[at]?.isNumber === true ? "is-number" : ""}>
                  {cell}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** A text of the lake: a text node, whose direction is its own. */
export const Name = ({ children }: { children: string }) => <bdi class="table-name">{children}</bdi>;

export function CopyButton({ text, label }: { text: string; label: string }) {
  const [isCopied, setCopied] = useState(false);
  return (
    <button
      type="button"
      aria-label={label}
      onClick={() => {
        void navigator.clipboard?.writeText(text).then(
          () => setCopied(true),
          () => undefined, // the browser refuses; the text can be selected
        );
      }}
    >
      {isCopied ? "Copied" : "Copy"}
    </button>
  );
}
