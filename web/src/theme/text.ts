/** Counts, sizes and times for people. Pure. */

const UNITS = ["B", "kB", "MB", "GB", "TB", "PB"];
const WHOLE = new Intl.NumberFormat("en");

export const countText = (count: number | bigint): string => WHOLE.format(count);

/** One of a noun, or so many: 1 row, 2 rows. */
export const plural = (count: number, noun: string): string => `${countText(count)} ${noun}${count === 1 ? "" : "s"}`;

export function bytesText(bytes: number): string {
  let [size, unit] = [bytes, 0];
  while (size >= 999.5 && unit < UNITS.length - 1) [size, unit] = [size / 1000, unit + 1];
  const digits = unit === 0 || size >= 99.95 ? 0 : 1;
  return `${size.toFixed(digits)} ${UNITS[unit]}`;
}

export function durationText(milliseconds: number): string {
  if (milliseconds < 999.5) return `${Math.round(milliseconds)} ms`;
  const seconds = milliseconds / 1000;
  if (seconds < 59.95) return `${seconds.toFixed(seconds < 9.995 ? 2 : 1)} s`;
  const minutes = Math.floor(Math.round(seconds) / 60);
  const rest = String(Math.round(seconds) % 60).padStart(2, "0");
  if (minutes < 60) return `${minutes}:${rest} min`;
  return `${Math.floor(minutes / 60)}:${String(minutes % 60).padStart(2, "0")} h`;
}

/** How long ago a time was: 3 min ago. */
export function agoText(time: number, now: number): string {
  const seconds = Math.max((now - time) / 1000, 0);
  if (seconds < 10) return "just now";
  if (seconds < 60) return `${Math.floor(seconds)} s ago`;
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3_600)} h ago`;
  const days = Math.floor(seconds / 86_400);
  return days < 60 ? `${plural(days, "day")} ago` : new Date(time).toISOString().slice(0, 10);
}
