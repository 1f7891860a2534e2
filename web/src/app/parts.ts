/** The parts of the page, between which F6 moves the focus. */

import type { EditorHandle } from "../editor/Editor";

const FOCUSABLE = '[tabindex="0"], button:not([tabindex="-1"]), a[href], input, select';

/** Put the focus into the next or the previous part. */
export function nextPart(by: 1 | -1, editor: EditorHandle | null): void {
  const parts = [".catalog", ".upper", ".lower", ".table-page"]
    .map((name) => document.querySelector<HTMLElement>(name))
    .filter((part) => part !== null);
  const now = parts.findIndex((part) => part.contains(document.activeElement));
  const start = now < 0 ? (by > 0 ? -1 : 0) : now;
  const next = parts[(start + by + parts.length) % parts.length];
  if (next === undefined) return;
  if (next.classList.contains("upper")) editor?.focus();
  else if (next.classList.contains("lower")) resultOf(next)?.focus();
  else firstOf(next)?.focus();
}

/** The grid if it is there, else whatever is. */
function resultOf(part: HTMLElement): HTMLElement | null {
  const grids = [...part.querySelectorAll<HTMLElement>("[role=grid]")];
  return grids.find((grid) => grid.offsetParent !== null) ?? part.querySelector<HTMLElement>('[role=tab][tabindex="0"]');
}

const firstOf = (part: HTMLElement): HTMLElement | null =>
  [...part.querySelectorAll<HTMLElement>(FOCUSABLE)].find((one) => one.offsetParent !== null) ?? null;
