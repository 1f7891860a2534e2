/** Draws the map: into an array of pixels, which a canvas takes in one call. */

import type { Layout } from "./layout";
import { type Stamp, type Theme, VERDICTS, stampOf } from "./verdicts";

/** The cells of all verdicts; those other than `only` are pale, if one is looked for. */
export function stampsOf(size: number, theme: Theme, only: number | null): Stamp[] {
  return VERDICTS.map((verdict, number) => stampOf(verdict, size, theme, only !== null && only !== number));
}

/** The pixels of all cells, the ground transparent where there is no cell. */
export function paintCells(layout: Layout, verdicts: Uint8Array, stamps: Stamp[]): Uint32Array {
  const { columns, count, size, width, height } = layout;
  const out = new Uint32Array(width * height);
  if (size === 1) {
    const colours = Uint32Array.from(stamps, (stamp) => stamp.pixels[0]!);
    for (let at = 0; at < count; at += 1) out[at] = colours[verdicts[at]!]!;
    return out;
  }
  const lines = stamps.map((stamp) =>
    Array.from({ length: size }, (_, y) => stamp.pixels.subarray(y * size, (y + 1) * size)),
  );
  for (let at = 0; at < count; at += 1) {
    const cell = lines[verdicts[at]!]!;
    let to = Math.floor(at / columns) * size * width + (at % columns) * size;
    for (let y = 0; y < size; y += 1) {
      const line = cell[y]!;
      for (let x = 0; x < size; x += 1) out[to + x] = line[x]!; // faster than `set` for a few pixels
      to += width;
    }
  }
  return out;
}

/** Draws on a canvas, which gets the size of the map. */
export function draw(canvas: HTMLCanvasElement, layout: Layout, verdicts: Uint8Array, stamps: Stamp[]): void {
  canvas.width = Math.max(1, layout.width);
  canvas.height = Math.max(1, layout.height);
  const context = canvas.getContext("2d");
  if (context === null || layout.count === 0) return;
  const pixels = paintCells(layout, verdicts, stamps);
  const bytes = new Uint8ClampedArray(pixels.buffer as ArrayBuffer);
  context.putImageData(new ImageData(bytes, layout.width, layout.height), 0, 0);
}
