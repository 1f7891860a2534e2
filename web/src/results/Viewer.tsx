/** One value, whole: text as it is, nested values and JSON as a tree. */

import type { DataType } from "@uwdata/flechette";
import { useEffect, useRef, useState } from "preact/hooks";

import { Nested, type Value } from "../grid/arrow";
import { previewOf } from "../grid/cells";
import type { Cell } from "../grid/selection";
import { textOf } from "../grid/values";
import { tell } from "../state/session";
import { bytesText, countText, plural } from "../theme/text";
import { toClipboard } from "./copy";

export interface Viewed {
  cell: Cell;
  name: string;
  kind: string;
  type: DataType;
  value: Value;
}

/** More is shown on request: browsers lay out ten megabytes of text slowly. */
const SHOWN = 100_000;
const SHOWN_PARTS = 500;

export function Viewer({ viewed, close }: { viewed: Viewed; close: () => void }) {
  const { value, type, name, kind, cell } = viewed;
  const [most, setMost] = useState(SHOWN);
  const closing = useRef<HTMLButtonElement>(null);
  useEffect(() => closing.current?.focus(), []);
  useEffect(() => setMost(SHOWN), [viewed]);
  const text = value === null ? "NULL" : textOf(type, value);
  const json = typeof value === "string" ? jsonIn(value) : undefined;
  return (
    <aside
      class="viewer"
      aria-label="Cell"
      onKeyDown={(event) => {
        if (event.key !== "Escape") return;
        event.stopPropagation();
        close();
      }}
    >
      <header>
        <div>
          <bdi class="name">{name}</bdi>
          <span class="weak">
            {kind} · row {countText(cell.row + 1)}
            {typeof value === "string" && ` · ${plural(charactersOf(value), "character")}`}
            {value instanceof Uint8Array && ` · ${bytesText(value.length)}`}
          </span>
        </div>
        <button
          type="button"
          class="quiet"
          onClick={() => void toClipboard(value === null ? "" : text).then(() => tell("Copied the cell"))}
        >
          Copy
        </button>
        <button type="button" class="quiet" aria-label="Close cell" ref={closing} onClick={close}>
          ✕
        </button>
      </header>
      <div class="viewer-body" tabIndex={0} role="region" aria-label="Value">
        {value === null ? (
          <p class="weak">This is null: there is no value.</p>
        ) : value === "" ? (
          <p class="weak">This is an empty text.</p>
        ) : value instanceof Nested ? (
          <Tree value={value} type={type} />
        ) : json !== undefined ? (
          <JsonTree value={json} label={null} isOpen />
        ) : (
          <pre dir="auto">{text.slice(0, most)}</pre>
        )}
        {text.length > most && !(value instanceof Nested) && json === undefined && (
          <p class="more">
            {countText(most)} of {countText(text.length)} characters.{" "}
            <button type="button" onClick={() => setMost(most + SHOWN)}>
              Show more
            </button>{" "}
            <button type="button" onClick={() => save(text)}>
              Save all to a file
            </button>
          </p>
        )}
      </div>
    </aside>
  );
}

function save(text: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
  link.download = "cell.txt";
  link.click();
  window.setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

/** In a very long text units are counted, which is near enough and does not take as long. */
const charactersOf = (text: string): number => (text.length < SHOWN ? [...text].length : text.length);

/** An object or list of JSON in a text; undefined for any other text. */
function jsonIn(text: string): unknown {
  if (!/^\s*[[{]/.test(text) || text.length > SHOWN || /[^\\"]\b\d{16,}/.test(text)) return undefined; // long numbers would be rounded
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

function Tree({ value, type }: { value: Nested; type: DataType }) {
  const [most, setMost] = useState(SHOWN_PARTS);
  return (
    <ul class="value-tree">
      {value.parts.length === 0 && <li class="weak">{previewOf(type, value)}</li>}
      {value.parts.slice(0, most).map((part, at) => {
        const label = part.key === undefined ? (part.label ?? String(at + 1)) : part.key.value === null ? "NULL" : textOf(part.key.type, part.key.value);
        if (part.value instanceof Nested && part.value.parts.length > 0) {
          return (
            <li key={at}>
              <details open={value.parts.length < 20}>
                <summary>
                  <bdi class="key">{label}</bdi> <span class="weak">{plural(part.value.parts.length, "part")}</span>
                </summary>
                <Tree value={part.value} type={part.type} />
              </details>
            </li>
          );
        }
        return (
          <li key={at}>
            <bdi class="key">{label}</bdi> <Leaf text={part.value === null ? null : textOf(part.type, part.value)} />
          </li>
        );
      })}
      {value.parts.length > most && (
        <li>
          <button type="button" onClick={() => setMost(most + SHOWN_PARTS)}>
            {countText(value.parts.length - most)} more
          </button>
        </li>
      )}
    </ul>
  );
}

function JsonTree({ value, label, isOpen = false }: { value: unknown; label: string | null; isOpen?: boolean }) {
  if (typeof value !== "object" || value === null) {
    return (
      <>
        {label !== null && <bdi class="key">{label}</bdi>} <Leaf text={value === null ? null : typeof value === "string" ? value : JSON.stringify(value)} />
      </>
    );
  }
  const parts = Object.entries(value).slice(0, SHOWN_PARTS);
  return (
    <details open={isOpen || parts.length < 20}>
      <summary>
        {label !== null && <bdi class="key">{label}</bdi>}{" "}
        <span class="weak">{plural(Object.keys(value).length, Array.isArray(value) ? "item" : "field")}</span>
      </summary>
      <ul class="value-tree">
        {parts.map(([name, part]) => (
          <li key={name}>
            <JsonTree value={part} label={name} />
          </li>
        ))}
      </ul>
    </details>
  );
}

const Leaf = ({ text }: { text: string | null }) =>
  text === null ? <span class="null">NULL</span> : text === "" ? <span class="empty">''</span> : <bdi class="leaf">{text.slice(0, SHOWN)}</bdi>;
