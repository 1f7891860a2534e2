/** The rows of a run as a chart. */

import { useEffect, useId, useMemo, useState } from "preact/hooks";

import { RequestFailed } from "../api/client";
import type { Column, Statement } from "../api/types";
import type { Run } from "../state/types";
import { Bars } from "./Bars";
import { ChartControls } from "./ChartControls";
import { PlotFrame } from "./PlotFrame";
import "./charts.css";
import { type ChartChoice, chooseChart, roleOf } from "./choose";
import { fetchDrawn } from "./fetch";
import type { Drawn } from "./series";
import { summaryOf, tableOf } from "./words";

export function Chart({ run }: { run: Run }) {
  const { statement } = run;
  if (statement === null || statement.state !== "finished") {
    const text = run.problem === null && statement?.state !== "failed" ? "The chart comes with the last row." : "No rows, no chart.";
    return (
      <section class="chart" aria-label="Chart">
        <p class="chart-note">{text}</p>
      </section>
    );
  }
  return <ChartOfRows key={statement.id} statement={statement} />;
}

const NO_COLUMNS: Column[] = [];

function ChartOfRows({ statement }: { statement: Statement }) {
  const columns = statement.columns ?? NO_COLUMNS;
  const [choice, choose] = useState<ChartChoice | null>(() => chooseChart(columns));
  if (choice === null || statement.row_count === 0) {
    const text = statement.row_count === 0 ? "The result has no rows." : "No column holds numbers, times or texts that a chart could show.";
    return (
      <section class="chart" aria-label="Chart">
        <p class="chart-note">{text}</p>
      </section>
    );
  }
  return (
    <section class="chart" aria-label="Chart">
      <ChartControls columns={columns} choice={choice} choose={choose} />
      <DrawnChart statement={statement} columns={columns} choice={choice} />
    </section>
  );
}

function DrawnChart({ statement, columns, choice }: { statement: Statement; columns: Column[]; choice: ChartChoice }) {
  const { drawn, of, problem } = useDrawn(statement, choice);
  if (problem !== null) {
    return (
      <p class="chart-problem" role="alert">
        {problem}
      </p>
    );
  }
  if (drawn === null) return <p class="chart-note">Counting…</p>;
  return <Figure columns={columns} choice={of} drawn={drawn} />;
}

function Figure({ columns, choice, drawn }: { columns: Column[]; choice: ChartChoice; drawn: Drawn }) {
  const id = useId();
  const summary = useMemo(() => summaryOf(choice, columns, drawn), [choice, columns, drawn]);
  const x = columns[choice.x]!;
  const y = choice.y.map((at) => columns[at]!.name).join(", ");
  return (
    <figure aria-labelledby={id}>
      {drawn.kind === "bar" ? (
        <Bars drawn={drawn} x={x.name} y={y === "" ? "rows" : y} />
      ) : (
        <PlotFrame
          drawn={drawn}
          summary={summary}
          xLabel={x.name}
          yLabel={drawn.kind === "histogram" ? "rows" : y}
          isTime={roleOf(x.type) === "time"}
          xType={x.type}
        />
      )}
      <figcaption id={id} dir="auto">
        {summary} {drawn.note}
      </figcaption>
      {drawn.kind !== "bar" && <Numbers columns={columns} choice={choice} drawn={drawn} />}
    </figure>
  );
}

function Numbers({ columns, choice, drawn }: { columns: Column[]; choice: ChartChoice; drawn: Drawn }) {
  const [isOpen, open] = useState(false);
  const found = useMemo(() => (isOpen ? tableOf(choice, columns, drawn) : null), [isOpen, choice, columns, drawn]);
  return (
    <details onToggle={(event) => open(event.currentTarget.open)}>
      <summary>The numbers as a table</summary>
      {found !== null && (
        <div class="chart-numbers" tabIndex={0} role="group" aria-label="The numbers of the chart">
          <table>
            <thead>
              <tr>
                {found.head.map((name, at) => (
                  <th key={at} scope="col" dir="auto">
                    {name}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {found.rows.map((row, at) => (
                <tr key={at}>
                  {row.map((text, column) => (
                    <td key={column} dir="auto">
                      {text}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
          {found.more > 0 && <p>{found.more.toLocaleString("en")} more are not listed.</p>}
        </div>
      )}
    </details>
  );
}

/** What is drawn, and the choice that it is of: while another one is fetched, the old chart stays. */
function useDrawn(statement: Statement, choice: ChartChoice) {
  const [found, setFound] = useState<{ drawn: Drawn; of: ChartChoice } | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  useEffect(() => {
    const stop = new AbortController();
    fetchDrawn(statement, choice, stop.signal).then(
      (drawn) => {
        if (stop.signal.aborted) return;
        setFound({ drawn, of: choice });
        setProblem(null);
      },
      (error: unknown) => {
        if (!stop.signal.aborted) setProblem(textOfError(error));
      },
    );
    return () => stop.abort();
  }, [statement, choice]);
  return { drawn: found?.drawn ?? null, of: found?.of ?? choice, problem };
}

const textOfError = (error: unknown): string =>
  error instanceof RequestFailed ? `${error.problem.detail} ${error.problem.hint ?? ""}`.trim() : String(error);
