/** Listens for the keys of the page's actions. */

import { ACTIONS, keyOf, keyText } from "../state/keys";

const CHORD_MS = 1_500;

/** Whether letters go into a text there. */
function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}

/** Call the actions when their keys are pressed; returns how to stop that. */
export function listen(actions: Record<string, (event: KeyboardEvent) => boolean | void>): () => void {
  let first = "";
  let firstAt = 0;
  const onKey = (event: KeyboardEvent): void => {
    if (event.isComposing || document.querySelector("dialog[open]") !== null) return;
    const key = keyText(event);
    if (key === "") return;
    const isPlain = key.length === 1;
    if (isPlain && isTyping(event.target)) return;
    const pressed = performance.now() - firstAt < CHORD_MS && first !== "" ? `${first} ${key}` : key;
    const found = ACTIONS.find(({ id }) => keyOf.value[id] === pressed) ?? ACTIONS.find(({ id }) => keyOf.value[id] === key);
    first = "";
    if (found === undefined) {
      if (isPlain && ACTIONS.some(({ id }) => keyOf.value[id]!.startsWith(`${key} `))) [first, firstAt] = [key, performance.now()];
      return;
    }
    if (actions[found.id]?.(event) === false) return; // not its place: others may take the key
    event.preventDefault();
    event.stopPropagation();
  };
  window.addEventListener("keydown", onKey, true);
  return () => window.removeEventListener("keydown", onKey, true);
}
