/** The rows of a run as a chart. */

import type { Run } from "../state/types";

export function Chart({ run }: { run: Run }) {
  return <section aria-label="Chart">{run.statement?.row_count ?? 0} rows</section>;
}
