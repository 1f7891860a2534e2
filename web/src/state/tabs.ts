/** The tabs: kept in the browser as they are typed, and for a while after they are closed. */

import { computed, signal } from "@preact/signals";

import { keep, drop, newId, readAll } from "./store";
import type { Tab } from "./types";

const MOST_CLOSED = 50;
const SAVE_MS = 300;
const lastKey = (): string => `underlay-tabs:${new URL(".", document.baseURI).pathname}`;

export const tabs = signal<Tab[]>([]);
export const closedTabs = signal<Tab[]>([]);
export const activeId = signal("");
export const activeTab = computed<Tab | undefined>(() => tabs.value.find((tab) => tab.id === activeId.value));

const unsaved = new Map<string, Tab>();
let saving = 0;

export async function loadTabs(): Promise<void> {
  const [known, closed, settings] = await Promise.all([
    readAll<Tab>("tabs"),
    readAll<Tab>("closed"),
    readAll<{ id: string; value: string }>("settings"),
  ]);
  tabs.value = takeLeft(known).sort((a, b) => a.order - b.order);
  closedTabs.value = closed.sort((a, b) => (b.closed ?? 0) - (a.closed ?? 0));
  const last = settings.find((one) => one.id === "active")?.value;
  if (tabs.value.length === 0) openTab({});
  else activate(tabs.value.some((tab) => tab.id === last) ? last! : tabs.value[0]!.id);
}

export function activate(id: string): void {
  activeId.value = id;
  void keep("settings", { id: "active", value: id } as { id: string });
}

/** Open a tab beside the others and show it. */
export function openTab(given: Partial<Tab>): Tab {
  const order = Math.max(0, ...tabs.value.map((tab) => tab.order)) + 1;
  const title = given.title ?? freeTitle();
  const tab: Tab = { kind: "sql", text: "", engine: "auto", asOf: null, parameters: {}, ...given, title, id: newId(), order };
  tabs.value = [...tabs.value, tab];
  save(tab);
  activate(tab.id);
  return tab;
}

/** Show a table's page: in the tab that has it, else in a new one. */
export function openTable(name: string): void {
  const known = tabs.value.find((tab) => tab.kind === "table" && tab.table === name);
  if (known === undefined) openTab({ kind: "table", table: name, title: name });
  else activate(known.id);
}

/** Show a text in a tab of its own; nothing runs. An empty tab is used. */
export function openText(given: Partial<Tab>): void {
  const current = activeTab.value;
  if (current?.kind === "sql" && current.text.trim() === "") changeTab(current.id, given);
  else openTab(given);
}

export function changeTab(id: string, change: Partial<Tab>): void {
  tabs.value = tabs.value.map((tab) => {
    if (tab.id !== id) return tab;
    const next = { ...tab, ...change };
    save(next);
    return next;
  });
}

export function closeTab(id: string): void {
  const at = tabs.value.findIndex((tab) => tab.id === id);
  const tab = tabs.value[at];
  if (tab === undefined) return;
  unsaved.delete(id);
  void drop("tabs", id);
  tabs.value = tabs.value.filter((one) => one.id !== id);
  if (tab.kind === "table" || tab.text.trim() !== "") {
    const closed = { ...tab, closed: Date.now() };
    const all = [closed, ...closedTabs.value];
    closedTabs.value = all.slice(0, MOST_CLOSED);
    void keep("closed", closed);
    void drop("closed", ...all.slice(MOST_CLOSED).map((one) => one.id));
  }
  if (tabs.value.length === 0) openTab({});
  else if (activeId.value === id) activate(tabs.value[Math.min(at, tabs.value.length - 1)]!.id);
}

/** Bring a closed tab back: the last one, or the one that is named. */
export function reopenTab(id?: string): void {
  const tab = id === undefined ? closedTabs.value[0] : closedTabs.value.find((one) => one.id === id);
  if (tab === undefined) return;
  closedTabs.value = closedTabs.value.filter((one) => one.id !== tab.id);
  void drop("closed", tab.id);
  const { closed: _, ...rest } = tab;
  openTab(rest);
}

/** Write what was typed last. */
function saveNow(): void {
  window.clearTimeout(saving);
  saving = 0;
  const records = [...unsaved.values()];
  unsaved.clear();
  if (records.length > 0) void keep("tabs", ...records).then(dropLeft);
}

/** The page closes. IndexedDB may not finish then; what it has not yet is left where the next page finds it. */
export function saveLast(): void {
  const records = [...unsaved.values()];
  if (records.length === 0) return;
  try {
    localStorage.setItem(lastKey(), JSON.stringify([...left(), ...records]));
  } catch {
    // too large, or not allowed: IndexedDB has to do
  }
  saveNow();
}

/** What the last page left, which is newer than what IndexedDB has. */
function left(): Tab[] {
  try {
    return JSON.parse(localStorage.getItem(lastKey()) ?? "[]") as Tab[];
  } catch {
    return [];
  }
}

/** IndexedDB has it now. */
function dropLeft(): void {
  try {
    localStorage.removeItem(lastKey());
  } catch {
    // not allowed: nothing was left either
  }
}

function takeLeft(known: Tab[]): Tab[] {
  const last = left();
  if (last.length === 0) return known;
  void keep("tabs", ...last).then(dropLeft);
  return [...new Map([...known, ...last].map((tab) => [tab.id, tab])).values()];
}

function save(tab: Tab): void {
  unsaved.set(tab.id, tab);
  if (saving === 0) saving = window.setTimeout(saveNow, SAVE_MS);
}

function freeTitle(): string {
  const taken = new Set(tabs.value.map((tab) => tab.title));
  let number = 1;
  while (taken.has(`Query ${number}`)) number += 1;
  return `Query ${number}`;
}
