/** Count, sum, least and greatest of the selected cells, exact. Pure. */

import { type DataType, Type } from "@uwdata/flechette";

import type { Value } from "../grid/arrow";
import { decimalText, isNumber, textOf } from "../grid/values";

export interface Summary {
  cells: number;
  nulls: number;
  sum: string | null;
  least: string | null;
  greatest: string | null;
}

const ORDERED: ReadonlySet<number> = new Set([Type.Date, Type.Time, Type.Timestamp]);

/** Takes cells one by one. Numbers of different scales are added exactly; with floats among them they are floats. */
export class Summing {
  private cells = 0;
  private nulls = 0;
  private others = 0;
  private numbers = 0;
  private exact = 0n;
  private readonly scale: number;
  private floats = 0;
  private hasFloats = false;
  private least: { type: DataType; value: Value } | null = null;
  private greatest: { type: DataType; value: Value } | null = null;
  private readonly isOneType: boolean;

  constructor(private readonly types: DataType[]) {
    this.scale = Math.max(0, ...types.map((type) => (type.typeId === Type.Decimal ? type.scale : 0)));
    const [first] = types;
    this.isOneType = types.every((type) => type.typeId === first!.typeId && unitOf(type) === unitOf(first!));
  }

  add(value: Value, column: number): void {
    this.cells += 1;
    if (value === null) {
      this.nulls += 1;
      return;
    }
    const type = this.types[column]!;
    if (isNumber(type)) this.addNumber(type, value as number | bigint);
    else this.others += 1;
    if (isNumber(type) || (ORDERED.has(type.typeId) && this.isOneType)) this.bound(type, value);
  }

  summary(): Summary {
    const isNumeric = this.numbers > 0 && this.others === 0;
    const sum = this.hasFloats ? String(this.floats + Number(this.exact) / 10 ** this.scale) : decimalText(this.exact, this.scale);
    const hasBounds = isNumeric || (this.isOneType && ORDERED.has(this.types[0]?.typeId ?? 0));
    const text = (bound: { type: DataType; value: Value } | null): string | null =>
      bound === null || !hasBounds ? null : textOf(bound.type, bound.value);
    return { cells: this.cells, nulls: this.nulls, sum: isNumeric ? sum : null, least: text(this.least), greatest: text(this.greatest) };
  }

  private addNumber(type: DataType, value: number | bigint): void {
    this.numbers += 1;
    if (type.typeId === Type.Float) {
      this.hasFloats = true;
      this.floats += Number(value);
    } else {
      this.exact += scaled(type, value, this.scale);
    }
  }

  private bound(type: DataType, value: Value): void {
    if (Number.isNaN(value)) return;
    const one = { type, value };
    if (this.least === null || this.compare(one, this.least) < 0) this.least = one;
    if (this.greatest === null || this.compare(one, this.greatest) > 0) this.greatest = one;
  }

  private compare(a: { type: DataType; value: Value }, b: { type: DataType; value: Value }): number {
    const isExact = (one: DataType): boolean => one.typeId === Type.Int || one.typeId === Type.Decimal;
    if (isExact(a.type) && isExact(b.type)) {
      const [left, right] = [a, b].map((one) => scaled(one.type, one.value as number | bigint, this.scale));
      return left! < right! ? -1 : left! > right! ? 1 : 0;
    }
    const number = (one: { type: DataType; value: Value }): number | bigint =>
      one.type.typeId === Type.Decimal ? Number(one.value as bigint) / 10 ** one.type.scale : (one.value as number | bigint);
    const [left, right] = [number(a), number(b)];
    return left < right ? -1 : left > right ? 1 : 0;
  }
}

const scaled = (type: DataType, value: number | bigint, scale: number): bigint =>
  BigInt(value) * 10n ** BigInt(scale - (type.typeId === Type.Decimal ? type.scale : 0));

const unitOf = (type: DataType): unknown => ("unit" in type ? type.unit : null);
