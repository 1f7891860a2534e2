/** Bars as a table, whose cells have lengths: names stay texts, whatever they hold. */

import type { Drawn } from "./series";
import { valueText } from "./words";

export function Bars({ drawn, x, y }: { drawn: Extract<Drawn, { kind: "bar" }>; x: string; y: string }) {
  const values = drawn.values.map((value) => value ?? 0);
  const least = Math.min(0, ...values);
  const span = Math.max(0, ...values) - least || 1;
  return (
    <table class="chart-bars">
      <colgroup>
        <col />
        <col />
        <col />
      </colgroup>
      <thead>
        <tr>
          <th scope="col" dir="auto">
            {x}
          </th>
          <th scope="col" colSpan={2} dir="auto">
            {y}
          </th>
        </tr>
      </thead>
      <tbody>
        {drawn.labels.map((label, at) => {
          const value = values[at]!;
          const from = (100 * (Math.min(0, value) - least)) / span;
          const length = (100 * Math.abs(value)) / span;
          return (
            <tr key={at}>
              <th scope="row">
                {label === null ? <i>NULL</i> : label === "" ? <i>(empty)</i> : <bdi title={label}>{label}</bdi>}
              </th>
              <td class="chart-bar">
                <div style={{ marginLeft: `${from}%`, width: `${length}%` }} class={value < 0 ? "chart-negative" : ""} />
              </td>
              <td class="chart-value">{drawn.values[at] === null ? <i>NULL</i> : valueText(drawn.values[at])}</td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}
