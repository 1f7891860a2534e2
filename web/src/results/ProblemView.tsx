/** What went wrong, where, and what to do; a name that is proposed is put in by a click. */

import type { Problem } from "../api/types";

interface ProblemViewProps {
  problem: Problem;
  /** Proposed names for the wrong one. */
  fixes?: { name: string; act: () => void }[];
  show?: (() => void) | undefined;
  again?: (() => void) | undefined;
}

export function ProblemView({ problem, fixes = [], show, again }: ProblemViewProps) {
  const { position, hint } = problem;
  const isFixed = fixes.length > 0 && /^Did you mean/.test(hint ?? "");
  return (
    <div class="problem" role="group" aria-label="Error">
      <h2>{problem.title}</h2>
      <p class="detail">{problem.detail.replace(/^\w+ Error: /, "")}</p>
      {hint !== undefined && !isFixed && <p class="hint">{hint}</p>}
      <div class="actions">
        {fixes.map((fix) => (
          <button type="button" key={fix.name} class="fix" onClick={fix.act}>
            Use <code>{fix.name}</code>
          </button>
        ))}
        {show !== undefined && (
          <button type="button" onClick={show}>
            {position === undefined ? "Show the statement" : `Go to line ${position.line}, column ${position.column}`}
          </button>
        )}
        {again !== undefined && (
          <button type="button" onClick={again}>
            Run again
          </button>
        )}
      </div>
    </div>
  );
}
