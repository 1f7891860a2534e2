/** What a plan decided about a block: words, colours and hatching. No two verdicts differ by colour alone. */

/** The order of the service's `verdicts`, then what only the page knows. */
export const VERDICTS = [
  "read",
  "read_whole",
  "segment",
  "partition",
  "file",
  "block",
  "deleted",
  "bloom",
  "not_asked",
] as const;

export type Verdict = (typeof VERDICTS)[number];

export const NOT_ASKED = VERDICTS.indexOf("not_asked");

/** The order in which people read them: what is read first, then the steps of a plan. */
export const SHOWN: readonly Verdict[] = [
  "read",
  "read_whole",
  "segment",
  "partition",
  "file",
  "block",
  "deleted",
  "bloom",
  "not_asked",
];

export const LABELS: Record<Verdict, string> = {
  read: "Read and filtered",
  read_whole: "Read, matches as a whole",
  segment: "Dropped with its segment",
  partition: "Dropped by partition",
  file: "Dropped with its file",
  block: "Dropped by block statistics",
  deleted: "Dropped, all rows deleted",
  bloom: "Dropped by bloom filter",
  not_asked: "Not asked for",
};

/** Whether a cell's pixel has the verdict's colour, or a tint of it. `size` is the cell's side: tiny cells are whole.
    What is read is solid and stands out; what was dropped is lines on a tint. */
type Hatch = (x: number, y: number, size: number) => boolean;

const lines = (coordinate: (x: number, y: number) => number): Hatch => {
  return (x, y, size) => size < 4 || coordinate(x, y) % 4 === 0;
};

const HATCHES: Record<Verdict, Hatch> = {
  read: () => true,
  read_whole: (x, y, size) => {
    const middle = (size - 1) / 2;
    return size < 5 || Math.abs(x - middle) > size / 6 || Math.abs(y - middle) > size / 6;
  },
  segment: lines((_, y) => y + 2),
  partition: lines((x) => x + 2),
  file: lines((x, y) => x + y),
  block: lines((x, y) => x - y + 400),
  deleted: (x, y, size) => size < 4 || (x + y) % 4 === 0 || (x - y + 400) % 4 === 0,
  bloom: (x, y, size) => size < 4 || (x % 4 < 2 && y % 4 < 2),
  not_asked: (x, y, size) => size < 4 || x === 0 || y === 0 || x === size - 1 || y === size - 1,
};

/** Okabe and Ito's hues, darkened on light ground and lightened on dark ground: each has a contrast of 3:1 or more to
    the ground of its theme. */
const COLOURS: Record<"light" | "dark", Record<Verdict, string>> = {
  light: {
    read: "#c44900",
    read_whole: "#0068a6",
    segment: "#4d5560",
    partition: "#00795a",
    file: "#7a4fa3",
    block: "#86681a",
    deleted: "#5f6875",
    bloom: "#ad3f76",
    not_asked: "#838b98",
  },
  dark: {
    read: "#ff8c42",
    read_whole: "#5cb8ec",
    segment: "#b4bac4",
    partition: "#3fc79a",
    file: "#c3a2f0",
    block: "#e0bd55",
    deleted: "#98a1ae",
    bloom: "#f28cc0",
    not_asked: "#7d8694",
  },
};

const GROUNDS = { light: "#ffffff", dark: "#14171c" };

export type Theme = keyof typeof GROUNDS;

export const colourOf = (verdict: Verdict, theme: Theme): string => COLOURS[theme][verdict];
export const groundOf = (theme: Theme): string => GROUNDS[theme];

/** One cell as pixels, as ImageData has them: a colour, a tint of it, and a margin of ground. */
export interface Stamp {
  size: number;
  pixels: Uint32Array;
}

/** A verdict's cell of `size` pixels. A pale one is drawn when another verdict is looked for. */
export function stampOf(verdict: Verdict, size: number, theme: Theme, isPale = false): Stamp {
  const ground = parse(GROUNDS[theme]);
  const full = parse(COLOURS[theme][verdict]);
  const colour = isPale ? mix(full, ground, 0.22) : full;
  const tint = verdict === "not_asked" ? ground : mix(colour, ground, verdict === "read_whole" ? 0.1 : 0.3);
  const gap = gapOf(size);
  const inner = size - gap;
  const pixels = new Uint32Array(size * size).fill(pack(ground));
  for (let y = 0; y < inner; y += 1) {
    for (let x = 0; x < inner; x += 1) {
      pixels[y * size + x] = pack(HATCHES[verdict](x, y, inner) ? colour : tint);
    }
  }
  return { size, pixels };
}

/** The pixels between cells. */
export const gapOf = (size: number): number => (size >= 12 ? 2 : size >= 5 ? 1 : 0);

type Colour = readonly [red: number, green: number, blue: number];

function parse(text: string): Colour {
  const number = Number.parseInt(text.slice(1), 16);
  return [number >> 16, (number >> 8) & 0xff, number & 0xff];
}

function mix(one: Colour, other: Colour, share: number): Colour {
  const [red, green, blue] = one.map((value, at) => Math.round(value * share + other[at]! * (1 - share)));
  return [red!, green!, blue!];
}

/** Little-endian, as every browser's machine is: the bytes are red, green, blue, alpha. */
const pack = ([red, green, blue]: Colour): number => ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;

/** WCAG's contrast of two colours. */
export function contrast(one: string, other: string): number {
  const [light, dark] = [luminance(parse(one)), luminance(parse(other))].sort((a, b) => b - a);
  return (light! + 0.05) / (dark! + 0.05);
}

function luminance(colour: Colour): number {
  const [red, green, blue] = colour.map((value) => {
    const share = value / 255;
    return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red! + 0.7152 * green! + 0.0722 * blue!;
}
