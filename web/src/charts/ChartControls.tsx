/** Which chart, and of which columns. */

import { useId } from "preact/hooks";

import type { Column } from "../api/types";
import { type ChartChoice, KINDS, asKind, axisColumns, seriesColumns, valueColumns } from "./choose";

const NAMES = { line: "Line", bar: "Bar", scatter: "Scatter", histogram: "Histogram" };
const MOST_LINES = 8;

export interface ControlsProps {
  columns: Column[];
  choice: ChartChoice;
  choose: (choice: ChartChoice) => void;
}

export function ChartControls({ columns, choice, choose }: ControlsProps) {
  const { kind } = choice;
  return (
    <div class="chart-controls">
      <div class="chart-kinds" role="group" aria-label="Kind of chart">
        {KINDS.map((one) => {
          const other = asKind(choice, one, columns);
          return (
            <button
              key={one}
              type="button"
              aria-pressed={one === kind}
              disabled={other === null}
              onClick={() => other !== null && one !== kind && choose(other)}
            >
              {NAMES[one]}
            </button>
          );
        })}
      </div>
      <ColumnChoice
        label={kind === "bar" ? "by" : "x"}
        columns={columns}
        from={axisColumns(kind, columns)}
        chosen={choice.x}
        choose={(x) => x !== null && choose({ ...choice, x })}
      />
      {kind === "line" && <Values columns={columns} choice={choice} choose={choose} />}
      {(kind === "bar" || kind === "scatter") && (
        <ColumnChoice
          label={kind === "bar" ? "sum of" : "y"}
          columns={columns}
          from={valueColumns(columns)}
          chosen={choice.y[0] ?? null}
          none={kind === "bar" ? "number of rows" : undefined}
          choose={(y) => choose({ ...choice, y: y === null ? [] : [y] })}
        />
      )}
      {kind === "line" && (
        <ColumnChoice
          label="a line for each"
          columns={columns}
          from={seriesColumns(columns).filter((at) => at !== choice.x && !choice.y.includes(at))}
          chosen={choice.series}
          none="–"
          choose={(series) => choose({ ...choice, series })}
        />
      )}
    </div>
  );
}

interface ColumnChoiceProps {
  label: string;
  columns: Column[];
  from: number[];
  chosen: number | null;
  /** What no column is called; undefined where there must be one. */
  none?: string | undefined;
  choose: (column: number | null) => void;
}

function ColumnChoice({ label, columns, from, chosen, none, choose }: ColumnChoiceProps) {
  const id = useId();
  return (
    <span class="chart-choice">
      <label for={id}>{label}</label>
      <select
        id={id}
        value={chosen === null ? "" : String(chosen)}
        onChange={(event) => choose(event.currentTarget.value === "" ? null : Number(event.currentTarget.value))}
      >
        {none !== undefined && <option value="">{none}</option>}
        {from.map((at) => (
          <option key={at} value={String(at)}>
            {columns[at]!.name}
          </option>
        ))}
      </select>
    </span>
  );
}

function Values({ columns, choice, choose }: ControlsProps) {
  const from = valueColumns(columns).filter((at) => at !== choice.x);
  const names = choice.y.map((at) => columns[at]!.name).join(", ");
  const change = (at: number, isOn: boolean): void => {
    const y = isOn ? [...choice.y, at].sort((a, b) => a - b).slice(0, MOST_LINES) : choice.y.filter((one) => one !== at);
    if (y.length > 0) choose({ ...choice, y, series: choice.series !== null && y.includes(choice.series) ? null : choice.series });
  };
  return (
    <details class="chart-values">
      <summary>
        y: <bdi>{names}</bdi>
      </summary>
      <div>
        {from.map((at) => (
          <label key={at}>
            <input
              type="checkbox"
              checked={choice.y.includes(at)}
              onChange={(event) => change(at, event.currentTarget.checked)}
            />
            <bdi>{columns[at]!.name}</bdi>
          </label>
        ))}
      </div>
    </details>
  );
}
