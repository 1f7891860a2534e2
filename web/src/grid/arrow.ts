/** Rows of Arrow as the grid reads them: exact, by position, so that columns may share a name. */

import { type Column, type DataType, type Table, tableFromIPC, Type } from "@uwdata/flechette";

/** A list, struct, map or union, with the parts that it has. */
export class Nested {
  constructor(
    readonly kind: "list" | "struct" | "map" | "union",
    readonly parts: Part[],
  ) {}
}

export interface Part {
  /** The field's name, the map's key, or null in a list. */
  label: string | null;
  type: DataType;
  value: Value;
  /** The key of a map, which need not be a text. */
  key?: { type: DataType; value: Value };
}

/** Months, days and nanoseconds. */
export class Interval {
  constructor(
    readonly months: number,
    readonly days: number,
    readonly nanos: bigint,
  ) {}
}

/** A value as stored: decimals are scaled integers, times count units. `type` says how to read it. */
export type Value = null | boolean | number | bigint | string | Uint8Array | Interval | Nested;

/** Nothing is rounded: 64-bit integers, decimals and timestamps become bigints. */
const EXACT = { useBigInt: true, useBigIntTimestamp: true, useDecimalInt: true } as const;

/** Some rows of a result. */
export class RowBlock {
  private readonly columns: Column<unknown>[];
  readonly types: DataType[];

  constructor(private readonly table: Table) {
    const count = table.schema.fields.length;
    this.columns = Array.from({ length: count }, (_, at) => table.getChildAt(at) as Column<unknown>);
    this.types = table.schema.fields.map((field) => plainType(field.type));
  }

  get length(): number {
    return this.columns.length === 0 ? 0 : this.table.numRows;
  }

  value(row: number, column: number): Value {
    const found = this.columns[column];
    if (found === undefined) return null;
    let at = row;
    for (const batch of found.data) {
      if (at < batch.length) return read(batch as unknown as AnyBatch, at);
      at -= batch.length;
    }
    return null;
  }
}

export const rowsOf = (bytes: Uint8Array): RowBlock => new RowBlock(tableFromIPC(bytes, EXACT));

/** The type of a dictionary's values, or the type itself. */
export function plainType(type: DataType): DataType {
  return type.typeId === Type.Dictionary ? plainType(type.dictionary) : type;
}

/** What all kinds of batches have, as far as they have it. */
interface AnyBatch {
  type: DataType;
  nullCount: number;
  length: number;
  children: AnyBatch[];
  offsets: ArrayLike<number | bigint>;
  values: Uint8Array;
  typeIds: Int8Array;
  isValid(at: number): boolean;
  value(at: number): unknown;
}

function read(batch: AnyBatch, at: number): Value {
  const { type } = batch;
  if (type.typeId !== Type.Union && batch.nullCount > 0 && !batch.isValid(at)) return null;
  switch (type.typeId) {
    case Type.Null:
      return null;
    case Type.List:
    case Type.LargeList:
      return list(batch, Number(batch.offsets[at]), Number(batch.offsets[at + 1]));
    case Type.FixedSizeList:
      return list(batch, at * type.stride, (at + 1) * type.stride);
    case Type.Struct:
      return new Nested("struct", batch.children.map((child, index) => part(child, at, type.children[index]!.name)));
    case Type.Map:
      return map(batch, Number(batch.offsets[at]), Number(batch.offsets[at + 1]));
    case Type.Union:
      return union(batch, at);
    case Type.Interval:
      return interval(batch, at);
    default:
      return batch.value(at) as Value; // a dictionary's values are scalars of these
  }
}

const part = (child: AnyBatch, at: number, label: string | null): Part => ({
  label,
  type: plainType(child.type),
  value: read(child, at),
});

function list(batch: AnyBatch, begin: number, end: number): Nested {
  const items = batch.children[0]!;
  return new Nested("list", Array.from({ length: end - begin }, (_, index) => part(items, begin + index, null)));
}

function map(batch: AnyBatch, begin: number, end: number): Nested {
  const [keys, values] = batch.children[0]!.children as [AnyBatch, AnyBatch];
  const parts = Array.from({ length: end - begin }, (_, index) => {
    const key = { type: plainType(keys.type), value: read(keys, begin + index) };
    return { ...part(values, begin + index, null), key };
  });
  return new Nested("map", parts);
}

function union(batch: AnyBatch, at: number): Value {
  const type = batch.type as DataType & { typeMap: Record<number, number>; mode: number; children: { name: string }[] };
  const index = type.typeMap[batch.typeIds[at]!];
  const child = index === undefined ? undefined : batch.children[index];
  if (child === undefined || index === undefined) return null;
  const place = batch.offsets ? Number(batch.offsets[at]) : at;
  const found = part(child, place, type.children[index]!.name);
  return found.value === null ? null : new Nested("union", [found]);
}

function interval(batch: AnyBatch, at: number): Value {
  const found = batch.value(at) as number | ArrayLike<number>;
  if (typeof found === "number") return new Interval(found, 0, 0n);
  if (found.length === 2) return new Interval(0, found[0]!, BigInt(found[1]!) * 1_000_000n);
  const { buffer, byteOffset } = batch.values;
  const view = new DataView(buffer, byteOffset + at * 16, 16);
  return new Interval(view.getInt32(0, true), view.getInt32(4, true), view.getBigInt64(8, true));
}
