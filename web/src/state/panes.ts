/** Which pane each tab shows below its text, and how the page is divided. */

import { signal } from "@preact/signals";

import { keep, readAll } from "./store";

export type Pane = "result" | "chart" | "blocks" | "history";

export const PANES: { pane: Pane; label: string }[] = [
  { pane: "result", label: "Result" },
  { pane: "chart", label: "Chart" },
  { pane: "blocks", label: "Blocks" },
  { pane: "history", label: "History" },
];

const shown = signal<Record<string, Pane>>({});

export const paneOf = (tab: string): Pane => shown.value[tab] ?? "result";

export const showPane = (tab: string, pane: Pane): void => {
  shown.value = { ...shown.value, [tab]: pane };
};

export interface PageLayout {
  /** Percent of the height for the text. */
  editor: number;
  /** Pixels of the catalog's width. */
  catalog: number;
  isCatalogShown: boolean;
}

const NARROW = 760;
export const isNarrow = (): boolean => window.innerWidth < NARROW;

export const layout = signal<PageLayout>({ editor: 40, catalog: 260, isCatalogShown: !isNarrow() });

export function divide(change: Partial<PageLayout>): void {
  layout.value = { ...layout.value, ...change };
  void keep("settings", { id: "layout", value: layout.value } as { id: string });
}

export async function loadLayout(): Promise<void> {
  const known = (await readAll<{ id: string; value: Partial<PageLayout> }>("settings")).find((one) => one.id === "layout")?.value;
  if (known === undefined) return;
  layout.value = { ...layout.value, ...known, ...(isNarrow() ? { isCatalogShown: false } : {}) };
}
