/** The service's answer with the blocks of a map: one column of verdicts at once, everything else when it is asked. */

import { type Column, type DataType, tableFromIPC } from "@uwdata/flechette";

import type { PlanStep } from "../api/types";
import { type Value, plainType } from "../grid/arrow";
import { plainName } from "../catalog/rows";
import { textOf } from "../grid/values";
import { LABELS, NOT_ASKED, VERDICTS, type Verdict } from "./verdicts";

/** A cell in words. */
export interface Cell {
  verdict: Verdict;
  /** Where it is: a file and a block, or some blocks of a bin. */
  title: string;
  facts: [name: string, value: string][];
  /** Why it was dropped. */
  reason: { condition: string; why: string } | null;
}

interface Facts {
  table: string;
  version: number;
  column: string | null;
  steps: PlanStep[];
  block_count: number;
}

const EXACT = { useBigInt: true, useBigIntTimestamp: true, useDecimalInt: true } as const;
const NUMBERS = new Intl.NumberFormat("en");

export class Blocks {
  readonly facts: Facts;
  /** The verdict of each cell. */
  readonly verdicts: Uint8Array;
  readonly isBinned: boolean;
  private readonly columns: Map<string, Column<unknown>>;
  private readonly types: Map<string, DataType>;

  constructor(bytes: Uint8Array, { areUnasked = false } = {}) {
    const table = tableFromIPC(bytes, EXACT);
    this.facts = JSON.parse(table.schema.metadata?.get("underlay") ?? "{}") as Facts;
    this.columns = new Map(table.names.map((name, at) => [String(name), table.getChildAt(at) as Column<unknown>]));
    this.types = new Map(table.schema.fields.map((field) => [field.name, plainType(field.type)]));
    this.isBinned = this.columns.has("first");
    this.verdicts = this.isBinned ? this.mostImportant(table.numRows) : this.numbers("verdict");
    if (areUnasked) this.verdicts = new Uint8Array(this.verdicts.length).fill(NOT_ASKED);
  }

  get length(): number {
    return this.verdicts.length;
  }

  /** How many blocks have each verdict. */
  counts(): number[] {
    const found = VERDICTS.map(() => 0);
    if (!this.isBinned || this.verdicts[0] === NOT_ASKED) {
      for (const verdict of this.verdicts) found[verdict]! += 1;
      return found;
    }
    VERDICTS.forEach((verdict, at) => {
      for (const count of this.columns.get(verdict) ?? []) found[at]! += Number(count);
    });
    return found;
  }

  cell(at: number): Cell {
    const verdict = VERDICTS[this.verdicts[at]!]!;
    if (this.isBinned) return { verdict, ...this.bin(at), reason: null };
    const step = this.value("step", at);
    const facts: [string, string][] = [
      ["Rows", this.number("rows", at)],
      ["Bytes", this.number("bytes", at)],
    ];
    const { column } = this.facts;
    if (column !== null) facts.push([plainName(column), `${this.text("min", at)} … ${this.text("max", at)}`]);
    return {
      verdict,
      title: `${this.text("file", at)}, block ${this.number("block", at)}`,
      facts,
      reason: step === null || verdict === "not_asked" ? null : this.why(Number(step)),
    };
  }

  private why(step: number): Cell["reason"] {
    const found = this.facts.steps[step];
    return found === undefined ? null : { condition: found.predicate ?? "", why: found.reason };
  }

  private bin(at: number): { title: string; facts: [string, string][] } {
    const first = Number(this.value("first", at));
    const blocks = Number(this.value("blocks", at));
    const kinds = VERDICTS.filter((one) => this.columns.has(one) && Number(this.value(one, at)) > 0);
    const facts = kinds.map((one): [string, string] => [LABELS[one], this.number(one, at)]);
    facts.push(["Rows", this.number("rows", at)], ["Bytes", this.number("bytes", at)]);
    return { title: `Blocks ${NUMBERS.format(first)} to ${NUMBERS.format(first + blocks - 1)}`, facts };
  }

  /** A bin has the verdict of what is read in it, if anything is; else the most frequent one. */
  private mostImportant(count: number): Uint8Array {
    const found = new Uint8Array(count);
    const columns = VERDICTS.map((verdict) => this.columns.get(verdict)?.toArray() ?? []);
    for (let at = 0; at < count; at += 1) {
      let [best, most] = [0, -1];
      columns.forEach((column, verdict) => {
        const weight = Number(column[at] ?? 0);
        const counted = verdict < 2 && weight > 0 ? Infinity : weight;
        if (counted > most) [best, most] = [verdict, counted];
      });
      found[at] = best;
    }
    return found;
  }

  private numbers(name: string): Uint8Array {
    return (this.columns.get(name)?.toArray() as Uint8Array | undefined) ?? new Uint8Array(0);
  }

  private value(name: string, at: number): Value {
    return (this.columns.get(name)?.at(at) ?? null) as Value;
  }

  private number(name: string, at: number): string {
    return NUMBERS.format(Number(this.value(name, at)));
  }

  private text(name: string, at: number): string {
    const type = this.types.get(name);
    const value = this.value(name, at);
    return value === null || type === undefined ? "unknown" : textOf(type, value);
  }
}
