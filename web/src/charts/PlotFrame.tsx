/** A canvas of uPlot in the page: its size, its theme, the words under the cursor, and buttons for what the mouse does. */

import { useEffect, useRef, useState } from "preact/hooks";

import type { Plot } from "./plot";
import type { Drawn } from "./series";
import { placeText, valueText } from "./words";

const DARK = "(prefers-color-scheme: dark)";

export interface PlotProps {
  drawn: Exclude<Drawn, { kind: "bar" }>;
  summary: string;
  xLabel: string;
  yLabel: string;
  xType: string;
  isTime: boolean;
}

export function PlotFrame(props: PlotProps) {
  const { drawn, summary } = props;
  const frame = useRef<HTMLDivElement>(null);
  const plot = useRef<Plot | null>(null);
  const [point, setPoint] = useState<number | null>(null);
  const [styles, setStyles] = useState<LineStyle[]>([]);
  const [hidden, hide] = useState<ReadonlySet<number>>(new Set());
  const isDark = useMedia(DARK);
  const hasLegend = drawn.kind === "line" && (drawn.lines.length > 1 || props.yLabel !== drawn.lines[0]?.label);

  useEffect(() => {
    const place = frame.current;
    if (place === null) return undefined;
    let isGone = false;
    let watcher: ResizeObserver | null = null;
    hide(new Set());
    setPoint(null);
    void import("./plot").then(({ COLOURS, dashOf, makePlot }) => {
      if (isGone) return;
      const colours = COLOURS[isDark ? "dark" : "light"];
      plot.current = makePlot(place, { ...props, colours, ...sizeOf(place), onPoint: setPoint });
      watcher = new ResizeObserver(() => plot.current?.resize(sizeOf(place).width, sizeOf(place).height));
      watcher.observe(place);
      const count = drawn.kind === "line" ? drawn.lines.length : 0;
      const style = (at: number): LineStyle => {
        return { colour: colours.lines[at % colours.lines.length]!, dash: dashOf(at, colours).join(" ") };
      };
      setStyles(Array.from({ length: count }, (_, at) => style(at)));
    });
    return () => {
      isGone = true;
      watcher?.disconnect();
      plot.current?.destroy();
      plot.current = null;
    };
  }, [drawn, isDark]);

  const toggle = (at: number): void => {
    const now = new Set(hidden);
    if (!now.delete(at)) now.add(at);
    hide(now);
    plot.current?.show(at, !now.has(at));
  };

  return (
    <>
      <div ref={frame} class="chart-plot" role="img" aria-label={summary} />
      <div class="chart-under">
        <p class="chart-point" aria-hidden="true" dir="auto">
          {point === null ? "" : pointText(props, point)}
        </p>
        {drawn.kind !== "histogram" && <ZoomButtons plot={plot} />}
      </div>
      {drawn.kind === "line" && hasLegend && (
        <ul class="chart-legend" aria-label="Lines">
          {drawn.lines.map((line, at) => (
            <li key={at}>
              <button type="button" aria-pressed={!hidden.has(at)} onClick={() => toggle(at)}>
                <LineSample style={styles[at] ?? null} />
                <bdi>{line.label}</bdi>
              </button>
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

interface LineStyle {
  colour: string;
  dash: string;
}

function LineSample({ style }: { style: LineStyle | null }) {
  return (
    <svg width="24" height="8" aria-hidden="true">
      {style !== null && (
        <line x1="0" y1="4" x2="24" y2="4" stroke={style.colour} stroke-width="2.5" stroke-dasharray={style.dash} />
      )}
    </svg>
  );
}

function ZoomButtons({ plot }: { plot: { current: Plot | null } }) {
  return (
    <div class="chart-zoom" role="group" aria-label="Part of x that is shown">
      <button type="button" aria-label="Earlier or less" onClick={() => plot.current?.zoom(1, -0.4)}>
        ←
      </button>
      <button type="button" aria-label="Zoom out" onClick={() => plot.current?.zoom(2, 0)}>
        −
      </button>
      <button type="button" aria-label="Zoom in" onClick={() => plot.current?.zoom(0.5, 0)}>
        +
      </button>
      <button type="button" aria-label="Later or more" onClick={() => plot.current?.zoom(1, 0.4)}>
        →
      </button>
      <button type="button" onClick={() => plot.current?.reset()}>
        All
      </button>
    </div>
  );
}

function pointText({ drawn, xType }: PlotProps, at: number): string {
  switch (drawn.kind) {
    case "line": {
      if (at >= drawn.x.length) return "";
      const values = drawn.lines.flatMap((line) => {
        const value = line.values[at];
        if (value == null) return [];
        const range = line.low === undefined ? "" : ` (${valueText(line.low[at])} … ${valueText(line.high?.[at])})`;
        return [`${line.label} ${valueText(value)}${range}`];
      });
      return `${placeText(drawn.x[at]!, xType)}: ${values.slice(0, 6).join(", ")}${values.length > 6 ? " …" : ""}`;
    }
    case "scatter":
      return at < drawn.x.length ? `${placeText(drawn.x[at]!, xType)}, ${valueText(drawn.y[at])}` : "";
    case "density":
      return "";
    case "histogram": {
      if (at >= drawn.counts.length) return "";
      const from = drawn.low + at * drawn.width;
      return `${placeText(from, xType)} to ${placeText(from + drawn.width, xType)}: ${valueText(drawn.counts[at])} rows`;
    }
  }
}

function sizeOf(place: HTMLElement): { width: number; height: number } {
  const width = Math.max(160, Math.floor(place.clientWidth));
  return { width, height: Math.round(Math.min(380, Math.max(260, width * 0.5))) };
}

function useMedia(query: string): boolean {
  const [matches, setMatches] = useState(() => matchMedia(query).matches);
  useEffect(() => {
    const found = matchMedia(query);
    const follow = (): void => setMatches(found.matches);
    found.addEventListener("change", follow);
    return () => found.removeEventListener("change", follow);
  }, [query]);
  return matches;
}
