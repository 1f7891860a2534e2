/** Values as text, by their type: on screen, in JSON and in SQL. Numbers keep all their digits. */

import { type DataType, DateUnit, Precision, TimeUnit, Type } from "@uwdata/flechette";

import { Interval, Nested, type Part, type Value } from "./arrow";

const DIGITS = [0, 3, 6, 9];
const PER_SECOND = [1n, 1_000n, 1_000_000n, 1_000_000_000n];
const DAY_SECONDS = 86_400n;
const DAY_INFINITY = 2_147_483_647;
const LONG_INFINITY = 9_223_372_036_854_775_807n;
const BY_NUMBER: ReadonlySet<number> = new Set([Type.Int, Type.Float, Type.Decimal]);

export const isNumber = (type: DataType): boolean => BY_NUMBER.has(type.typeId);

export const isNested = (type: DataType): boolean =>
  type.typeId === Type.List ||
  type.typeId === Type.LargeList ||
  type.typeId === Type.FixedSizeList ||
  type.typeId === Type.Struct ||
  type.typeId === Type.Map ||
  type.typeId === Type.Union;

/** The value as people read it. Null is the caller's: it is no text. */
export function textOf(type: DataType, value: Value): string {
  if (value === null) return "NULL";
  if (value instanceof Nested) return jsonOf(type, value);
  if (value instanceof Interval) return intervalText(value);
  if (value instanceof Uint8Array) return hex(value);
  switch (type.typeId) {
    case Type.Float:
      return floatText(Number(value), type.precision === Precision.SINGLE || type.precision === Precision.HALF);
    case Type.Decimal:
      return decimalText(BigInt(value as bigint | number), type.scale);
    case Type.Date:
      return dateText(value as number, type.unit === DateUnit.DAY);
    case Type.Time:
      return timeText(BigInt(value as bigint | number), type.unit);
    case Type.Timestamp:
      return timestampText(value as bigint, type.unit, type.timezone ?? null, " ");
    case Type.Duration:
      return `${value} ${["s", "ms", "µs", "ns"][type.unit] ?? ""}`;
    default:
      return String(value);
  }
}

/** The value as JSON, by the same rules as the service's answers. */
export function jsonOf(type: DataType, value: Value): string {
  if (value === null) return "null";
  if (value instanceof Nested) return nestedJson(value);
  if (typeof value === "boolean") return String(value);
  if (value instanceof Uint8Array) return JSON.stringify(base64(value));
  if (type.typeId === Type.Int) return String(value);
  if (type.typeId === Type.Decimal && type.scale <= 0) return textOf(type, value);
  if (type.typeId === Type.Float && Number.isFinite(value as number)) return textOf(type, value);
  if (type.typeId === Type.Timestamp) {
    return JSON.stringify(timestampText(value as bigint, type.unit, type.timezone ?? null, "T"));
  }
  return JSON.stringify(textOf(type, value));
}

/** The value as a literal of SQL. */
export function sqlOf(type: DataType, value: Value): string {
  if (value === null) return "NULL";
  if (value instanceof Nested) return nestedSql(value);
  if (value instanceof Interval) return `INTERVAL ${quote(sqlInterval(value))}`;
  if (value instanceof Uint8Array) return `from_hex(${quote(hex(value).slice(2))})`;
  const text = textOf(type, value);
  switch (type.typeId) {
    case Type.Bool:
      return text.toUpperCase();
    case Type.Int:
    case Type.Decimal:
      return text;
    case Type.Float:
      return Number.isFinite(value as number) ? text : `${quote(text)}::DOUBLE`;
    case Type.Date:
      return `DATE ${quote(text)}`;
    case Type.Time:
      return `TIME ${quote(text)}`;
    case Type.Timestamp:
      return type.timezone == null ? `TIMESTAMP ${quote(text)}` : `TIMESTAMPTZ ${quote(text)}`;
    default:
      return quote(text);
  }
}

/** A text of SQL, with its quotes doubled. */
export const quote = (text: string): string => `'${text.replaceAll("'", "''")}'`;

function nestedJson(value: Nested): string {
  const items = value.parts;
  if (value.kind === "list") return `[${items.map((item) => jsonOf(item.type, item.value)).join(", ")}]`;
  if (value.kind === "union") return items.map((item) => jsonOf(item.type, item.value)).join("");
  if (value.kind === "map") {
    const pair = (item: Part) => `[${jsonOf(item.key!.type, item.key!.value)}, ${jsonOf(item.type, item.value)}]`;
    return `[${items.map(pair).join(", ")}]`;
  }
  return `{${items.map((item) => `${JSON.stringify(item.label)}: ${jsonOf(item.type, item.value)}`).join(", ")}}`;
}

function nestedSql(value: Nested): string {
  const items = value.parts;
  const literals = (): string => items.map((item) => sqlOf(item.type, item.value)).join(", ");
  if (value.kind === "list") return `[${literals()}]`;
  if (value.kind === "union") return literals();
  if (value.kind === "map") {
    const pairs = items.map((item) => `${sqlOf(item.key!.type, item.key!.value)}: ${sqlOf(item.type, item.value)}`);
    return `MAP {${pairs.join(", ")}}`;
  }
  return `{${items.map((item) => `${quote(item.label ?? "")}: ${sqlOf(item.type, item.value)}`).join(", ")}}`;
}

/** The shortest number that reads back the same. */
function floatText(value: number, isSingle: boolean): string {
  if (Object.is(value, -0)) return "-0";
  if (!isSingle || !Number.isFinite(value)) return String(value);
  for (let digits = 1; digits < 10; digits += 1) {
    const short = Number(value.toPrecision(digits));
    if (Math.fround(short) === value) return String(short);
  }
  return String(value);
}

/** A decimal from its scaled integer. */
export function decimalText(scaled: bigint, scale: number): string {
  if (scale <= 0) return String(scaled * 10n ** BigInt(-scale));
  const digits = String(scaled < 0n ? -scaled : scaled).padStart(scale + 1, "0");
  return `${scaled < 0n ? "-" : ""}${digits.slice(0, -scale)}.${digits.slice(-scale)}`;
}

function dateText(milliseconds: number, isDay: boolean): string {
  const days = Math.round(milliseconds / 86_400_000);
  if (isDay && Math.abs(days) === DAY_INFINITY) return days > 0 ? "infinity" : "-infinity";
  return civil(BigInt(days));
}

function timeText(value: bigint, unit: number): string {
  const per = PER_SECOND[unit] ?? 1n;
  return clock(value / per, value % per, unit);
}

function timestampText(value: bigint, unit: number, zone: string | null, between: string): string {
  if (value === LONG_INFINITY || value === -LONG_INFINITY) return value > 0n ? "infinity" : "-infinity";
  const per = PER_SECOND[unit] ?? 1n;
  const [seconds, fraction] = floorDivide(value, per);
  const [days, rest] = floorDivide(seconds, DAY_SECONDS);
  return `${civil(days)}${between}${clock(rest, fraction, unit)}${zone === null ? "" : "Z"}`;
}

/** Hours, minutes, seconds, and the fraction in groups of three digits as far as it is not zero. */
function clock(seconds: bigint, fraction: bigint, unit: number): string {
  const [hours, minutes, rest] = [seconds / 3600n, (seconds / 60n) % 60n, seconds % 60n].map((one) =>
    String(one).padStart(2, "0"),
  );
  let digits = unit === TimeUnit.SECOND ? "" : String(fraction).padStart(DIGITS[unit] ?? 0, "0");
  while (digits.endsWith("000")) digits = digits.slice(0, -3);
  return `${hours}:${minutes}:${rest}${digits === "" ? "" : `.${digits}`}`;
}

function floorDivide(value: bigint, by: bigint): [bigint, bigint] {
  const rest = ((value % by) + by) % by;
  return [(value - rest) / by, rest];
}

/** The date of a day counted from 1970, in the calendar that counts on in both directions. */
function civil(days: bigint): string {
  const [era, day] = floorDivide(days + 719_468n, 146_097n); // eras of 400 years that begin on a 1st of March
  const year = (day - day / 1460n + day / 36_524n - day / 146_096n) / 365n;
  const dayOfYear = day - (365n * year + year / 4n - year / 100n);
  const shifted = (5n * dayOfYear + 2n) / 153n;
  const month = shifted < 10n ? shifted + 3n : shifted - 9n;
  const full = era * 400n + year + (month <= 2n ? 1n : 0n);
  const digits = String(full < 0n ? -full : full).padStart(4, "0");
  const sign = full < 0n ? "-" : full > 9999n ? "+" : "";
  const two = (one: bigint): string => String(one).padStart(2, "0");
  return `${sign}${digits}-${two(month)}-${two(dayOfYear - (153n * shifted + 2n) / 5n + 1n)}`;
}

/** ISO 8601, such as P1Y2M3DT4.5S. */
function intervalText({ months, days, nanos }: Interval): string {
  const years = Math.trunc(months / 12);
  const date = [
    [years, "Y"],
    [months % 12, "M"],
    [days, "D"],
  ] as const;
  const amount = nanos < 0n ? -nanos : nanos;
  const sign = nanos < 0n ? "-" : "";
  const seconds = decimalText(amount % 60_000_000_000n, 9).replace(/\.?0+$/, "");
  const time = [
    [amount / 3_600_000_000_000n, "H"],
    [(amount / 60_000_000_000n) % 60n, "M"],
  ] as const;
  const first = date.filter(([count]) => count !== 0).map(([count, unit]) => `${count}${unit}`);
  const last = time.filter(([count]) => count !== 0n).map(([count, unit]) => `${sign}${count}${unit}`);
  if (amount % 60_000_000_000n !== 0n) last.push(`${sign}${seconds}S`);
  if (last.length > 0) last.unshift("T");
  return first.length + last.length === 0 ? "PT0S" : `P${first.join("")}${last.join("")}`;
}

const sqlInterval = ({ months, days, nanos }: Interval): string =>
  `${months} months ${days} days ${decimalText(nanos, 9)} seconds`;

const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

const hex = (bytes: Uint8Array): string => `0x${Array.from(bytes, (byte) => HEX[byte]).join("")}`;

function base64(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  return btoa(text);
}
