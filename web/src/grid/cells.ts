/** What a cell shows. Values are only ever text nodes: nothing in them is markup. */

import type { DataType } from "@uwdata/flechette";

import type { Value } from "./arrow";
import { isNested, isNumber, textOf } from "./values";

/** A cell shows as many characters; the viewer shows all. */
const SHOWN = 300;
const BREAKS = /\r\n|[\n\r\u2028\u2029]/g;

/** The beginning of the value's text, on one line. */
export function previewOf(type: DataType, value: Exclude<Value, null>): string {
  let cut = value;
  if (typeof value === "string" && value.length > SHOWN) cut = value.slice(0, SHOWN);
  else if (value instanceof Uint8Array && value.length > SHOWN) cut = value.subarray(0, SHOWN);
  const text = textOf(type, cut);
  const isCut = cut !== value || text.length > SHOWN;
  return (isCut ? `${text.slice(0, SHOWN)}…` : text).replace(BREAKS, "⏎").replaceAll("\t", "⇥");
}

/** NULL, an empty text and the text NULL look different, and not by colour alone. */
export function fill(cell: HTMLElement, type: DataType, value: Value): void {
  cell.classList.toggle("null", value === null);
  cell.classList.toggle("empty", value === "");
  cell.classList.toggle("number", isNumber(type));
  cell.classList.toggle("nested", isNested(type));
  const text = value === null ? "NULL" : value === "" ? "''" : previewOf(type, value);
  if (cell.textContent !== text) cell.textContent = text;
}

export function fillWaiting(cell: HTMLElement): void {
  cell.classList.remove("null", "empty", "number", "nested");
  if (cell.textContent !== "…") cell.textContent = "…";
}
