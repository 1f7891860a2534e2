/** The cells on a canvas, with a cursor that follows the mouse and the arrow keys. */

import { useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";

import type { Blocks } from "./answer";
import { type Layout, cellAt, layoutOf, moved, nextOf, placeOf } from "./layout";
import { draw, stampsOf } from "./paint";
import { LABELS, type Theme } from "./verdicts";

const MOST_HEIGHT = 420;
/** As in blocks.css. */
const PADDING = 4;
/** A cell's side at least, where there are so few that fingers can hit them. */
const FEW = 400;

export interface MapCanvasProps {
  blocks: Blocks;
  summary: string;
  theme: Theme;
  /** The verdict that is looked for. */
  only: number | null;
}

export function MapCanvas({ blocks, summary, theme, only }: MapCanvasProps) {
  const frame = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const width = useWidthOf(frame);
  const scale = useMemo(() => Math.max(1, Math.round(devicePixelRatio)), [width]);
  const layout = useMemo(
    () => layoutOf(blocks.length, width * scale, MOST_HEIGHT * scale, blocks.length <= FEW ? 10 * scale : 1),
    [blocks, width, scale],
  );
  /** The cell under the cursor: a signal, so that a move renders the words beside the map and nothing else. */
  const at = useSignal<number | null>(null);

  useLayoutEffect(() => {
    if (canvas.current === null || width === 0) return;
    const began = performance.now();
    draw(canvas.current, layout, blocks.verdicts, stampsOf(layout.size, theme, only));
    canvas.current.dataset.drawnMs = String(Math.round((performance.now() - began) * 10) / 10);
    canvas.current.dataset.cells = String(blocks.length);
  }, [blocks, layout, theme, only, width]);

  useEffect(() => {
    if (at.value !== null && at.value >= blocks.length) at.value = null;
  }, [blocks]);

  const onPointer = (event: PointerEvent): void => {
    const box = canvas.current?.getBoundingClientRect();
    if (box === undefined) return;
    const found = cellAt(layout, (event.clientX - box.left) * scale, (event.clientY - box.top) * scale);
    if (found !== null) at.value = found;
  };

  const onKey = (event: KeyboardEvent): void => {
    if (event.altKey || event.metaKey || blocks.length === 0) return;
    const from = at.value;
    const isNext = event.key === "n" || event.key === "p";
    let to: number | null;
    if (isNext && !event.ctrlKey) {
      const wanted = only ?? blocks.verdicts[from ?? 0]!;
      to = nextOf(blocks.verdicts, wanted, from ?? -1, event.key === "n" ? 1 : -1);
    } else {
      to = moved(layout, from ?? 0, event.key, event.ctrlKey);
      if (to === null) return;
      if (from === null) to = event.key === "End" ? to : 0;
    }
    event.preventDefault();
    if (to !== null) {
      at.value = to;
      intoView(canvas.current, layout, to, scale);
    }
  };

  return (
    <div class="map-main">
      <div
        ref={frame}
        class="map-frame"
        role="application"
        aria-roledescription="block map"
        aria-label={`${summary} Arrow keys move between blocks; n and p go to the next and previous one alike.`}
        tabIndex={0}
        onKeyDown={onKey}
        onFocus={() => (at.value ??= blocks.length > 0 ? 0 : null)}
        onPointerMove={onPointer}
        onPointerDown={onPointer}
      >
        <canvas
          ref={canvas}
          aria-hidden="true"
          style={{ width: `${layout.width / scale}px`, height: `${layout.height / scale}px` }}
        />
        <Cursor at={at} layout={layout} scale={scale} />
      </div>
      <CellWords at={at} blocks={blocks} />
    </div>
  );
}

interface Marked {
  at: { value: number | null };
}

function Cursor({ at, layout, scale }: Marked & { layout: Layout; scale: number }) {
  if (at.value === null || at.value >= layout.count) return null;
  const { x, y } = placeOf(layout, at.value);
  const side = Math.max(layout.size / scale, 5);
  const shift = (layout.size / scale - side) / 2;
  const place = `translate(${x / scale + shift}px, ${y / scale + shift}px)`;
  return <div class="map-cursor" style={{ width: `${side}px`, height: `${side}px`, transform: place }} />;
}

function CellWords({ at, blocks }: Marked & { blocks: Blocks }) {
  if (at.value === null || at.value >= blocks.length) {
    return <p class="map-words map-weak">Point at a block, or press Tab and the arrow keys, to see what it is.</p>;
  }
  const cell = blocks.cell(at.value);
  return (
    <div class="map-words" role="status">
      <p class="map-title">
        <bdi>{cell.title}</bdi>
      </p>
      <p>
        <strong>{LABELS[cell.verdict]}</strong>
        {cell.reason !== null && (
          <>
            {": "}
            {cell.reason.condition !== "" && <code dir="auto">{cell.reason.condition}</code>} {cell.reason.why}
          </>
        )}
      </p>
      <dl>
        {cell.facts.map(([name, value]) => (
          <div key={name}>
            <dt dir="auto">{name}</dt>
            <dd dir="auto">{value}</dd>
          </div>
        ))}
      </dl>
    </div>
  );
}

function useWidthOf(frame: { current: HTMLDivElement | null }): number {
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    if (frame.current === null) return undefined;
    const watcher = new ResizeObserver(([entry]) => {
      if (entry !== undefined) setWidth(Math.floor(entry.contentRect.width));
    });
    watcher.observe(frame.current);
    setWidth(Math.floor(frame.current.clientWidth) - 2 * PADDING);
    return () => watcher.disconnect();
  }, []);
  return width;
}

/** Cells of a map that is higher than its frame: the frame scrolls. */
function intoView(canvas: HTMLCanvasElement | null, layout: Layout, at: number, scale: number): void {
  const frame = canvas?.parentElement;
  if (frame == null) return;
  const top = placeOf(layout, at).y / scale;
  const side = layout.size / scale + 2 * PADDING;
  if (top < frame.scrollTop) frame.scrollTop = top;
  if (top + side > frame.scrollTop + frame.clientHeight) frame.scrollTop = top + side - frame.clientHeight;
}
