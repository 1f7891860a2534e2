/** The rows of a run, with what one can do with them. */

import type { Run } from "../state/types";

export function Results({ run }: { run: Run }) {
  return <section aria-label="Results">{run.statement?.row_count ?? 0} rows</section>;
}
