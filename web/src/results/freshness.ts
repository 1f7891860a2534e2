/** When the versions that a statement read were committed. */

import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";

import { table } from "../api/client";

const MOST_TABLES = 6;
const committed = signal<Record<string, number>>({});
const asked = new Set<string>();

/** Milliseconds since 1970 by `table@version`, as far as they are known. */
export function useCommitted(read: { name: string; version: number }[]): Record<string, number> {
  useEffect(() => {
    for (const { name, version } of read.slice(0, MOST_TABLES)) {
      const key = `${name}@${version}`;
      if (asked.has(key)) continue;
      asked.add(key);
      table(name, { version }).then(
        (found) => (committed.value = { ...committed.value, [key]: Date.parse(found.committed) }),
        () => asked.delete(key), // the version may be gone; the next run asks again
      );
    }
  }, [read.map(({ name, version }) => `${name}@${version}`).join()]);
  return committed.value;
}
