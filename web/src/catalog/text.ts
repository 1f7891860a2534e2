/** Shares, changes and moments as people read them, and names as SQL does. */

import { agoText, bytesText, countText } from "../theme/text";

/** A part of a whole in percent; never 0 % of something, nor 100 % of less than all. */
export function shareText(part: number, whole: number): string {
  if (whole === 0 || part === 0) return "0 %";
  if (part === whole) return "100 %";
  const share = (100 * part) / whole;
  if (share < 0.1) return "< 0.1 %";
  if (share > 99.9) return "> 99.9 %";
  return `${share.toFixed(share < 10 || share > 99 ? 1 : 0)} %`;
}

/** How long ago a moment of the service was. */
export const sinceText = (moment: string): string =>
  Number.isFinite(Date.parse(moment)) ? agoText(Date.parse(moment), Date.now()) : "";

/** "2026-11-19 21:39:42 UTC". */
export function momentText(moment: string): string {
  const time = Date.parse(moment);
  if (!Number.isFinite(time)) return moment;
  return `${new Date(time).toISOString().slice(0, 19).replace("T", " ")} UTC`;
}

/** "+1,200" or "−3". */
export const signedText = (value: number): string =>
  value > 0 ? `+${countText(value)}` : value < 0 ? `−${countText(-value)}` : "0";

export const signedBytes = (value: number): string =>
  value > 0 ? `+${bytesText(value)}` : value < 0 ? `−${bytesText(-value)}` : "0 B";

/** A name of SQL, in quotes where it needs them. */
export function quotedName(name: string): string {
  return /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) && !RESERVED.has(name.toLowerCase()) ? name : `"${name.replaceAll('"', '""')}"`;
}

/** DuckDB's words that cannot be names everywhere. */
const RESERVED = new Set(
  (
    "all analyse analyze and any array as asc asymmetric both case cast check collate column constraint create default " +
    "deferrable desc describe distinct do else end except false fetch for foreign from group having in initially " +
    "intersect into lambda lateral leading limit not null offset on only or order pivot pivot_longer pivot_wider " +
    "placing primary qualify references returning select show some summarize symmetric table then to trailing true " +
    "union unique unpivot using variadic when where window with anti asof at authorization collation columns " +
    "concurrently cross freeze full generated glob ilike inner is isnull join left like map natural notnull outer " +
    "overlaps positional right semi similar tablesample try_cast unpack verbose"
  ).split(" "),
);

/** `dataset.table` as SQL names it. */
export function quotedTable(name: string): string {
  return name.split(".").map(quotedName).join(".");
}

/** A query of a table, at a version if one is given. */
export const selectText = (name: string, version: number | null): string =>
  `SELECT *\nFROM ${quotedTable(name)}${version === null ? "" : ` VERSION AS OF ${version}`}\nLIMIT 1000`;
