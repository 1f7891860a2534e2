/** Tabs as a file: exported, and imported again, here or elsewhere. Files of SQL are imported too. */

import { openTab, tabs } from "./tabs";
import type { Tab } from "./types";

const FORMAT = "underlay-tabs";
const MOST_BYTES = 10_000_000;

export function exportTabs(): string {
  const kept = tabs.value.map(({ kind, title, text, table, engine, asOf, parameters }) => ({
    ...{ kind, title, text, table, engine, asOf, parameters },
  }));
  return JSON.stringify({ format: FORMAT, version: 1, tabs: kept }, null, 2);
}

/** Open what the file has in new tabs. Raises Error if it has none. */
export async function importTabs(file: File): Promise<number> {
  if (file.size > MOST_BYTES) throw new Error(`${file.name} is larger than 10 MB.`);
  const text = await file.text();
  if (!file.name.endsWith(".json")) {
    openTab({ title: file.name.replace(/\.sql$/i, ""), text });
    return 1;
  }
  const found = tabsIn(text);
  if (found === null) throw new Error(`${file.name} has no tabs: export them here, or import a file of SQL.`);
  found.forEach((tab) => openTab(tab));
  return found.length;
}

/** The tabs in a text that was exported; null for any other text. Values of other types are left out. */
export function tabsIn(text: string): Partial<Tab>[] | null {
  let found: unknown;
  try {
    found = JSON.parse(text);
  } catch {
    return null;
  }
  if (!isRecord(found) || found.format !== FORMAT || !Array.isArray(found.tabs)) return null;
  return found.tabs.filter(isRecord).map(tabOf);
}

function tabOf(given: Record<string, unknown>): Partial<Tab> {
  const tab: Partial<Tab> = { kind: given.kind === "table" && typeof given.table === "string" ? "table" : "sql" };
  if (typeof given.title === "string") tab.title = given.title;
  if (typeof given.text === "string") tab.text = given.text;
  if (tab.kind === "table") tab.table = given.table as string;
  if (given.engine === "duckdb" || given.engine === "spark") tab.engine = given.engine;
  if (typeof given.asOf === "string") tab.asOf = given.asOf;
  if (isRecord(given.parameters)) {
    const texts = Object.entries(given.parameters).filter(([, one]) => isRecord(one) && typeof one.text === "string");
    tab.parameters = Object.fromEntries(texts) as NonNullable<Tab["parameters"]>;
  }
  return tab;
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
