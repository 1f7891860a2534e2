/** What a statement changed, in words. */

import { useEffect, useState } from "preact/hooks";

import { windowOf } from "../api/client";
import type { Statement } from "../api/types";
import { rowsOf } from "../grid/arrow";
import { plural } from "../theme/text";

const COUNT = "num_affected_rows";
const DONE: Record<string, string> = {
  num_inserted_rows: "added",
  num_updated_rows: "changed",
  num_deleted_rows: "deleted",
};

/** Whether the rows are the counts of a change. */
export const isChange = ({ columns = [], row_count }: Statement): boolean => columns[0]?.name === COUNT && row_count === 1;

export function Changed({ statement }: { statement: Statement }) {
  const [says, say] = useState("");
  useEffect(() => {
    const stop = new AbortController();
    windowOf(statement.id, { offset: 0, limit: 1 }, stop.signal).then(
      (bytes) => {
        const rows = rowsOf(bytes);
        const counts = (statement.columns ?? []).map(({ name }, at) => [name, Number(rows.value(0, at) ?? 0)] as const);
        say(changeText(Object.fromEntries(counts)));
      },
      () => undefined, // the counts are gone; that it was done is said
    );
    return () => stop.abort();
  }, [statement.id]);
  return <p class="message done">The change is committed. {says}</p>;
}

/** The counts of a change in a sentence. */
export function changeText(counts: Record<string, number>): string {
  const parts = Object.entries(DONE)
    .filter(([name]) => (counts[name] ?? 0) > 0)
    .map(([name, done]) => `${plural(counts[name]!, "row")} ${done}`);
  const affected = counts[COUNT] ?? 0;
  if (parts.length === 0 && affected > 0) parts.push(`${plural(affected, "row")} changed`);
  const version = counts.version === undefined ? "" : ` The table is at version ${counts.version}.`;
  return parts.length === 0 ? version.trim() : `${parts.join(", ")}.${version}`;
}
