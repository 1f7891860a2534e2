/** The keys: what they do, and which the user chose for that. */

import { computed, signal } from "@preact/signals";

import { drop, keep, readAll } from "./store";

export interface Action {
  id: string;
  label: string;
  group: "Run" | "Text" | "Tabs" | "Page";
  /** As `Mod+Shift+Enter`; Mod is Ctrl, on a Mac Cmd. `g r` is one key after the other, outside of texts. */
  key: string;
}

export const ACTIONS: Action[] = [
  { id: "run", label: "Run the selection, or the statement at the cursor", group: "Run", key: "Mod+Enter" },
  { id: "run-all", label: "Run all statements of the tab", group: "Run", key: "Mod+Shift+Enter" },
  { id: "stop", label: "Stop (when the result has the focus)", group: "Run", key: "Escape" },
  { id: "format", label: "Format the text", group: "Text", key: "Alt+Shift+F" },
  { id: "share", label: "Copy a link to the text", group: "Text", key: "Mod+S" },
  { id: "new-tab", label: "New tab", group: "Tabs", key: "Alt+T" },
  { id: "close-tab", label: "Close tab", group: "Tabs", key: "Alt+W" },
  { id: "reopen-tab", label: "Bring the last closed tab back", group: "Tabs", key: "Alt+Shift+T" },
  ...Array.from({ length: 9 }, (_, at): Action => ({
    id: `tab-${at + 1}`,
    label: `Tab ${at + 1}`,
    group: "Tabs",
    key: `Alt+${at + 1}`,
  })),
  { id: "next-pane", label: "Next part: catalog, text, result", group: "Page", key: "F6" },
  { id: "previous-pane", label: "Previous part", group: "Page", key: "Shift+F6" },
  { id: "keys", label: "This list", group: "Page", key: "F1" },
  { id: "keys-too", label: "This list (outside of texts)", group: "Page", key: "?" },
  { id: "show-result", label: "Result (outside of texts)", group: "Page", key: "g r" },
  { id: "show-chart", label: "Chart (outside of texts)", group: "Page", key: "g c" },
  { id: "show-blocks", label: "Blocks (outside of texts)", group: "Page", key: "g b" },
  { id: "show-history", label: "History (outside of texts)", group: "Page", key: "g h" },
];

/** Keys of the editor and the grid, which cannot be changed. */
export const FIXED: { label: string; key: string; group: string }[] = [
  { group: "Editor", key: "Ctrl+Space", label: "Complete" },
  { group: "Editor", key: "Ctrl+/", label: "Comment, or not" },
  { group: "Editor", key: "Ctrl+F", label: "Find in the text" },
  { group: "Editor", key: "Escape, Tab", label: "Leave the editor" },
  { group: "Result", key: "Arrows, Page Up/Down, Home, End", label: "Move; with Ctrl to the end; with Shift select" },
  { group: "Result", key: "Ctrl+A, Ctrl+C", label: "Select all, copy" },
  { group: "Result", key: "Shift+Space, Ctrl+Space", label: "Select the row, the column" },
  { group: "Result", key: "Enter", label: "Show the whole value; in the row of names the menu of the column" },
  { group: "Result", key: "Alt+←, Alt+→", label: "Make the column narrower, wider" },
];

const chosen = signal<Record<string, string>>({});

/** The keys of the actions by their ids: the user's, else the usual ones. */
export const keyOf = computed<Record<string, string>>(() =>
  Object.fromEntries(ACTIONS.map(({ id, key }) => [id, chosen.value[id] ?? key])),
);

export async function loadKeys(): Promise<void> {
  const known = await readAll<{ id: string; value: unknown }>("settings");
  const found = known.find((one) => one.id === "keys")?.value;
  if (typeof found === "object" && found !== null) chosen.value = found as Record<string, string>;
}

export function chooseKey(id: string, key: string): void {
  const usual = ACTIONS.find((action) => action.id === id)?.key;
  const { [id]: _, ...others } = chosen.value;
  chosen.value = key === usual ? others : { ...others, [id]: key };
  void keep("settings", { id: "keys", value: chosen.value } as { id: string });
}

export function usualKeys(): void {
  chosen.value = {};
  void drop("settings", "keys");
}

/** The actions that have the same key as another one. */
export function doubled(keys: Record<string, string>): Set<string> {
  const all = Object.values(keys);
  return new Set(Object.keys(keys).filter((id) => keys[id] !== "" && all.filter((key) => key === keys[id]).length > 1));
}

interface Pressed {
  key: string;
  code: string;
  ctrlKey: boolean;
  metaKey: boolean;
  altKey: boolean;
  shiftKey: boolean;
}

/** The key as the list has it; "" for Shift and others alone. */
export function keyText(event: Pressed): string {
  if (["Shift", "Control", "Alt", "Meta", "Dead", "Process", "AltGraph"].includes(event.key)) return "";
  let key = event.key === " " ? "Space" : event.key;
  // Alt types other characters on some keyboards: then the place of the key counts
  if (event.altKey && /^(Key[A-Z]|Digit\d)$/.test(event.code)) key = event.code.replace(/^(Key|Digit)/, "");
  if (key.length === 1 && /\p{L}/u.test(key) && (event.ctrlKey || event.metaKey || event.altKey)) key = key.toUpperCase();
  const isSign = key.length === 1 && !/[\p{L}\p{N}]/u.test(key);
  const parts = [
    event.ctrlKey || event.metaKey ? "Mod" : "",
    event.altKey ? "Alt" : "",
    event.shiftKey && !isSign && !(key.length === 1 && !event.altKey && !event.ctrlKey && !event.metaKey) ? "Shift" : "",
    key,
  ];
  return parts.filter(Boolean).join("+");
}

/** As people read it: on a Mac with its signs. */
export const shownKey = (key: string, isMac = /Mac|iP(hone|ad)/.test(navigator.platform)): string =>
  key.replace("Mod", isMac ? "Cmd" : "Ctrl");
