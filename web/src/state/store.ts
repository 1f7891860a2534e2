/** What the browser keeps of the page, in IndexedDB: tabs, closed tabs, history, settings. Without it, nothing is kept. */

import { signal } from "@preact/signals";

export type StoreName = "tabs" | "closed" | "history" | "settings";

const STORES: StoreName[] = ["tabs", "closed", "history", "settings"];

/** Whether the browser lets the page keep anything; private windows may not. */
export const isKeeping = signal(true);

let opened: Promise<IDBDatabase | null> | null = null;
/** When it is open: a page that closes has no time to wait for a promise. */
let database: IDBDatabase | null = null;

function open(): Promise<IDBDatabase | null> {
  opened ??= new Promise((resolve) => {
    const fail = (): void => {
      isKeeping.value = false;
      resolve(null);
    };
    try {
      const request = indexedDB.open(`underlay:${new URL(".", document.baseURI).pathname}`, 1);
      request.onupgradeneeded = () => {
        for (const name of STORES) request.result.createObjectStore(name, { keyPath: "id" });
      };
      request.onsuccess = () => resolve((database = request.result));
      request.onerror = fail;
      request.onblocked = fail;
    } catch {
      fail();
    }
  });
  return opened;
}

export async function readAll<T extends { id: string }>(store: StoreName): Promise<T[]> {
  const known = await open();
  if (known === null) return [];
  return new Promise((resolve) => {
    const request = known.transaction(store).objectStore(store).getAll();
    request.onsuccess = () => resolve(request.result as T[]);
    request.onerror = () => resolve([]);
  });
}

export const keep = (store: StoreName, ...records: { id: string }[]): Promise<void> =>
  change(store, (objects) => records.forEach((record) => objects.put(record)));

export const drop = (store: StoreName, ...ids: string[]): Promise<void> =>
  change(store, (objects) => ids.forEach((id) => objects.delete(id)));

export const dropAll = (store: StoreName): Promise<void> => change(store, (objects) => objects.clear());

async function change(store: StoreName, work: (objects: IDBObjectStore) => void): Promise<void> {
  const known = database ?? (await open());
  if (known === null) return;
  await new Promise<void>((resolve) => {
    const transaction = known.transaction(store, "readwrite");
    transaction.oncomplete = () => resolve();
    transaction.onerror = transaction.onabort = () => {
      isKeeping.value = false; // the disk is full, perhaps
      resolve();
    };
    work(transaction.objectStore(store));
  });
}

let ids = 0;

export const newId = (): string => `${Date.now().toString(36)}-${(ids += 1)}-${Math.random().toString(36).slice(2, 8)}`;
