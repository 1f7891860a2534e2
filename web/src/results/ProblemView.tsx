/** What went wrong, where, and what to do; a name that is proposed is put in by a click. */

import type { Problem } from "../api/types";

interface ProblemViewProps {
  problem: Problem;
  /** Proposed names for the wrong one. */
  fixes?: { name: string; act: () => void }[];
  place?: { label: string; act: () => void } | undefined;
  again?: (() => void) | undefined;
}

export function ProblemView({ problem, fixes = [], place, again }: ProblemViewProps) {
  const { hint } = problem;
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
        {place !== undefined && (
          <button type="button" onClick={place.act}>
            {place.label}
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
