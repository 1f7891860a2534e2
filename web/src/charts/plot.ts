/** Draws on canvases by uPlot. Loaded when the first chart is drawn. */

import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";

import type { Density, Drawn } from "./series";

export interface PlotColours {
  text: string;
  weak: string;
  grid: string;
  lines: readonly string[];
}

/** Chosen for people who see few colours; dashes tell apart those that share one. */
export const COLOURS: Record<"light" | "dark", PlotColours> = {
  light: {
    text: "#1a1d23",
    weak: "#565d6b",
    grid: "#e3e6eb",
    lines: ["#0068a6", "#c44900", "#00795a", "#ad3f76", "#86681a", "#4d5560", "#7a4fa3"],
  },
  dark: {
    text: "#e7eaf0",
    weak: "#a3abb9",
    grid: "#2a303a",
    lines: ["#5cb8ec", "#ff8c42", "#3fc79a", "#f28cc0", "#e0bd55", "#b4bac4", "#c3a2f0"],
  },
};

const DASHES: number[][] = [[], [8, 4], [2, 3]];

export const dashOf = (at: number, colours: PlotColours): number[] =>
  DASHES[Math.floor(at / colours.lines.length) % DASHES.length]!;

export interface PlotRequest {
  drawn: Exclude<Drawn, { kind: "bar" }>;
  xLabel: string;
  yLabel: string;
  isTime: boolean;
  colours: PlotColours;
  width: number;
  height: number;
  /** Tells the place under the cursor: a number of a point, or null. */
  onPoint: (at: number | null) => void;
}

export interface Plot {
  resize(width: number, height: number): void;
  show(line: number, isShown: boolean): void;
  /** Shows a part of x, `factor` times as much as now, moved by `shift` of what is shown. */
  zoom(factor: number, shift: number): void;
  reset(): void;
  destroy(): void;
}

export function makePlot(frame: HTMLElement, asked: PlotRequest): Plot {
  const { drawn } = asked;
  const { data, series, bands, range, hooks } = partsOf(asked);
  const plot = new uPlot(
    {
      width: asked.width,
      height: asked.height,
      tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
      scales: { x: { time: asked.isTime, ...(range === null ? {} : { range }) } },
      axes: [axis(asked, asked.xLabel, 0), axis(asked, asked.yLabel, 1)],
      legend: { show: false },
      cursor: { y: false, points: { show: drawn.kind === "line" }, drag: { x: drawn.kind !== "histogram", y: false } },
      series,
      bands,
      hooks: {
        setCursor: [(self) => asked.onPoint(self.cursor.idx ?? null)],
        ...hooks,
      },
    },
    data,
    frame,
  );
  // each line of bins is three series: its mean, its greatest and its least value
  const perLine = drawn.kind === "line" && drawn.lines[0]?.low !== undefined ? 3 : 1;
  const whole = (): [number, number] => range ?? [data[0]![0] as number, data[0]![data[0]!.length - 1] as number];
  return {
    resize: (width, height) => plot.setSize({ width, height }),
    show: (line, isShown) => {
      for (let at = 0; at < perLine; at += 1) plot.setSeries(1 + line * perLine + at, { show: isShown });
    },
    zoom: (factor, shift) => {
      const { min, max } = plot.scales.x as { min?: number | null; max?: number | null };
      if (min == null || max == null) return;
      const half = ((max - min) / 2) * factor;
      const middle = (max + min) / 2 + (max - min) * shift;
      plot.setScale("x", { min: middle - half, max: middle + half });
    },
    reset: () => {
      const [min, max] = whole();
      plot.setScale("x", { min, max });
    },
    destroy: () => plot.destroy(),
  };
}

interface Parts {
  data: uPlot.AlignedData;
  series: uPlot.Series[];
  bands: uPlot.Band[];
  range: [number, number] | null;
  hooks: uPlot.Hooks.Arrays;
}

function partsOf(asked: PlotRequest): Parts {
  const { drawn } = asked;
  switch (drawn.kind) {
    case "line":
      return linesOf(drawn, asked.colours);
    case "scatter": {
      const colour = asked.colours.lines[0]!;
      const points = { show: true, size: drawn.x.length > 2000 ? 3 : 5, stroke: colour, fill: `${colour}99`, width: 0.5 };
      return { data: [drawn.x, drawn.y], series: [{}, { paths: () => null, points }], bands: [], range: null, hooks: {} };
    }
    case "density":
      return densityOf(drawn.cells, asked.colours);
    case "histogram": {
      const { low, width, counts } = drawn;
      const middles = counts.map((_, bin) => low + (bin + 0.5) * width);
      const colour = asked.colours.lines[0]!;
      const paths = uPlot.paths.bars!({ size: [0.94, Infinity] });
      const range: [number, number] = [low, low + Math.max(1, counts.length) * width];
      const series = [{}, { paths, fill: colour, stroke: colour, width: 0, points: { show: false } }];
      return { data: [middles, counts], series, bands: [], range, hooks: {} };
    }
  }
}

function linesOf(drawn: Extract<Drawn, { kind: "line" }>, colours: PlotColours): Parts {
  const data: (number | null)[][] = [drawn.x];
  const series: uPlot.Series[] = [{}];
  const bands: uPlot.Band[] = [];
  const isSparse = drawn.x.length <= 60;
  drawn.lines.forEach((line, at) => {
    const stroke = colours.lines[at % colours.lines.length]!;
    const dash = dashOf(at, colours);
    const points = isSparse ? { show: true, size: 5, fill: stroke } : { show: false };
    series.push({ stroke, width: 1.6, dash, points, spanGaps: true });
    data.push(line.values);
    if (line.low !== undefined && line.high !== undefined) {
      const edge: uPlot.Series = { stroke: "transparent", width: 0, points: { show: false }, spanGaps: true };
      series.push({ ...edge }, { ...edge });
      data.push(line.high, line.low);
      bands.push({ series: [series.length - 2, series.length - 1], fill: `${stroke}26` });
    }
  });
  return { data: data as uPlot.AlignedData, series, bands, range: null, hooks: {} };
}

/** Cells whose counts are shades of one colour, by the logarithm. */
function densityOf(cells: Density, colours: PlotColours): Parts {
  const [lowX, highX] = extent(cells.x);
  const [lowY, highY] = extent(cells.y);
  const { width, height } = cells;
  const data: uPlot.AlignedData = [
    [lowX - width / 2, highX + width / 2],
    [lowY - height / 2, highY + height / 2],
  ];
  const most = Math.log(1 + cells.counts.reduce((one, other) => Math.max(one, other), 1));
  const draw = (plot: uPlot): void => {
    const { ctx } = plot;
    const { left, top, width: boxWidth, height: boxHeight } = plot.bbox;
    // whole pixels: edges that overlap would show as lines
    const edge = (value: number, scale: "x" | "y"): number => Math.round(plot.valToPos(value, scale, true));
    ctx.save();
    ctx.beginPath();
    ctx.rect(left, top, boxWidth, boxHeight);
    ctx.clip();
    ctx.fillStyle = colours.lines[0]!;
    cells.x.forEach((x, at) => {
      ctx.globalAlpha = 0.2 + (0.8 * Math.log(1 + cells.counts[at]!)) / most;
      const y = cells.y[at]!;
      const [begin, end] = [edge(x - width / 2, "x"), edge(x + width / 2, "x")];
      const [top, bottom] = [edge(y + height / 2, "y"), edge(y - height / 2, "y")];
      ctx.fillRect(begin, top, Math.max(end - begin, 1), Math.max(bottom - top, 1));
    });
    ctx.restore();
  };
  const series: uPlot.Series[] = [{}, { paths: () => null, points: { show: false } }];
  return { data, series, bands: [], range: null, hooks: { draw: [draw] } };
}

function extent(values: number[]): [number, number] {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  return low <= high ? [low, high] : [0, 1];
}

function axis(asked: PlotRequest, label: string, side: 0 | 1): uPlot.Axis {
  const { colours } = asked;
  const shown = label.length > 60 ? `${label.slice(0, 60)}…` : label;
  const common = {
    stroke: colours.weak,
    grid: { stroke: colours.grid, width: 1 },
    ticks: { stroke: colours.grid, width: 1 },
    font: "12px system-ui, sans-serif",
    label: shown,
    labelFont: "12px system-ui, sans-serif",
    labelSize: 22,
  };
  if (side === 1) return { ...common, size: widthOf };
  return asked.isTime ? { ...common, values: MOMENTS, space: 80 } : common;
}

/** From a distance of ticks in seconds on: what each says, and what is said below the first of a year or a day. ISO's
    order, which every reader knows. */
const MOMENTS: uPlot.Axis.Values = [
  [365 * 86_400, "{YYYY}", null, null, null, null, null, null, 1],
  [28 * 86_400, "{YYYY}-{MM}", null, null, null, null, null, null, 1],
  [86_400, "{MM}-{DD}", "\n{YYYY}", null, null, null, null, null, 1],
  [60, "{HH}:{mm}", "\n{YYYY}-{MM}-{DD}", null, "\n{MM}-{DD}", null, null, null, 1],
  [1, "{HH}:{mm}:{ss}", "\n{YYYY}-{MM}-{DD}", null, "\n{MM}-{DD}", null, null, null, 1],
  [0.001, "{HH}:{mm}:{ss}.{fff}", "\n{YYYY}-{MM}-{DD}", null, "\n{MM}-{DD}", null, null, null, 1],
];

/** As wide as the longest number of the axis. */
function widthOf(_: uPlot, values: string[] | null): number {
  const longest = (values ?? []).reduce((most, value) => Math.max(most, value?.length ?? 0), 0);
  return Math.max(40, longest * 7.5 + 16);
}
