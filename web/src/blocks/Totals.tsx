/** Beside the map: how many blocks have each verdict, and the steps of the plan with the numbers of `explain`. */

import { useLayoutEffect, useRef } from "preact/hooks";

import type { ScanPlan } from "../api/types";
import { shareText } from "../catalog/text";
import { bytesText, countText, plural } from "../theme/text";
import { LABELS, SHOWN, type Theme, VERDICTS, type Verdict, stampOf } from "./verdicts";

const SWATCH = 18;

export interface LegendProps {
  counts: number[];
  theme: Theme;
  only: number | null;
  choose: (only: number | null) => void;
}

/** Each verdict with its count. Pressing one shows where its blocks are. */
export function Legend({ counts, theme, only, choose }: LegendProps) {
  const total = counts.reduce((sum, count) => sum + count, 0);
  const shown = SHOWN.filter((verdict) => counts[VERDICTS.indexOf(verdict)]! > 0);
  return (
    <ul class="map-legend" aria-label="Blocks by what the plan did with them">
      {shown.map((verdict) => {
        const number = VERDICTS.indexOf(verdict);
        return (
          <li key={verdict}>
            <button
              type="button"
              aria-pressed={only === number}
              onClick={() => choose(only === number ? null : number)}
              title="Show only these"
            >
              <Swatch verdict={verdict} theme={theme} />
              <span class="map-label">{LABELS[verdict]}</span>
              <span class="map-count">{countText(counts[number]!)}</span>
              <span class="map-share">{shareText(counts[number]!, total)}</span>
            </button>
          </li>
        );
      })}
    </ul>
  );
}

function Swatch({ verdict, theme }: { verdict: Verdict; theme: Theme }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  useLayoutEffect(() => {
    const { pixels } = stampOf(verdict, SWATCH, theme);
    const image = new ImageData(new Uint8ClampedArray(pixels.buffer as ArrayBuffer), SWATCH, SWATCH);
    canvas.current?.getContext("2d")?.putImageData(image, 0, 0);
  }, [verdict, theme]);
  return <canvas ref={canvas} class="map-swatch" width={SWATCH} height={SWATCH} aria-hidden="true" />;
}

/** What each step dropped: `plan.explain()` as a table. */
export function StepsTable({ plan }: { plan: ScanPlan }) {
  const { total, kept, steps } = plan;
  return (
    <div class="map-scroll" tabIndex={0} role="group" aria-label="Steps of the plan, scrolls sideways">
      <table class="map-steps">
        <caption>What each step of the plan dropped</caption>
        <thead>
          <tr>
            <th scope="col">Step</th>
            <th scope="col">Condition</th>
            <th scope="col">Files</th>
            <th scope="col">Blocks</th>
            <th scope="col">Bytes</th>
          </tr>
        </thead>
        <tbody>
          <tr>
            <th scope="row">Table</th>
            <td>{plural(total.rows, "row")}</td>
            <td>{countText(total.files)}</td>
            <td>{countText(total.blocks)}</td>
            <td>{bytesText(total.data_bytes)}</td>
          </tr>
          {steps.map((step, at) => (
            <tr key={at}>
              <th scope="row">{step.level}</th>
              <td dir="auto">
                {step.predicate !== null && step.predicate !== "" && <code>{step.predicate}</code>} {step.reason}
              </td>
              <td>{step.files === 0 ? "" : `−${countText(step.files)}`}</td>
              <td>{step.blocks === 0 ? "" : `−${countText(step.blocks)}`}</td>
              <td>{step.data_bytes === 0 ? "" : `−${bytesText(step.data_bytes)}`}</td>
            </tr>
          ))}
          <tr class="map-kept">
            <th scope="row">Read</th>
            <td>
              {plural(kept.rows, "row")}; {plural(kept.full_matches, "block")} {kept.full_matches === 1 ? "matches" : "match"} as a whole
            </td>
            <td>{countText(kept.files)}</td>
            <td>{countText(kept.blocks)}</td>
            <td>{bytesText(kept.fetch_bytes)}</td>
          </tr>
        </tbody>
      </table>
    </div>
  );
}
