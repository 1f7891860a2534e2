/** Completion: columns of the statement's tables first, then tables and functions, keywords last. */

import type { Completion as Choice, CompletionContext, CompletionResult, CompletionSource } from "@codemirror/autocomplete";

import { completion } from "../api/client";
import type { Column, FunctionSignature } from "../api/types";
import { isInText, nameBefore, type NamedTable, type Scope, scopeOf } from "./scope";
import { statementAt } from "./split";
import type { Dialect } from "./words";

interface Names {
  tables: string[];
  functions: FunctionSignature[];
  keywords: string[];
}

const PLAIN = /^[a-z_][a-z0-9_]*$/;
const NOTHING: Names = { tables: [], functions: [], keywords: [] };
const FRESH_MS = 60_000;

let names: { asked: number; found: Promise<Names> } | null = null;
const columns = new Map<string, { asked: number; found: Promise<Column[]> }>();

/** A name as SQL takes it: quoted, unless it is plain. */
export const quoted = (name: string, dialect: Dialect): string => {
  const quote = dialect.isSpark ? "`" : '"';
  return PLAIN.test(name) ? name : quote + name.replaceAll(quote, quote + quote) + quote;
};

/** A table's name as SQL takes it: its dataset and its name. */
export const quotedTable = (table: string, dialect: Dialect): string => {
  const dot = table.indexOf(".");
  return dot < 0 ? quoted(table, dialect) : `${quoted(table.slice(0, dot), dialect)}.${quoted(table.slice(dot + 1), dialect)}`;
};

/** Names are asked for again: somebody logged in, or changed tables. */
export function forgetNames(): void {
  names = null;
  columns.clear();
}

export const completer =
  (dialect: () => Dialect): CompletionSource =>
  async (context: CompletionContext): Promise<CompletionResult | null> => {
    const text = context.state.doc.toString();
    const kind = dialect();
    const statement = statementAt(text, context.pos, kind);
    const [sql, begin] = statement === null || context.pos < statement.from ? ["", context.pos] : [statement.sql, statement.from];
    const place = context.pos - begin;
    if (isInText(sql, place, kind)) return null;
    const { parts, from } = nameBefore(sql, place, kind);
    if (!context.explicit && parts.length === 0 && from === place) return null;
    const known = await knownNames();
    const scope = scopeOf(sql, kind);
    const options =
      parts.length > 0
        ? await inside(parts, scope, known, kind)
        : [...(await scopeColumns(scope, known, kind)), ...scopeNames(scope, kind), ...everywhere(known, kind)];
    return options.length === 0 ? null : { from: begin + from, options, validFor: /^["`]?[\p{L}\p{N}_$]*$/u };
  };

/** After a dot: the columns of a table or an alias, or the tables of a dataset. */
async function inside(parts: string[], scope: Scope, known: Names, dialect: Dialect): Promise<Choice[]> {
  const wanted = parts.join(".").toLowerCase();
  const found: Choice[] = [];
  const tables = scope.tables.filter(
    (one) => one.alias.toLowerCase() === wanted || one.table.join(".").toLowerCase() === wanted,
  );
  for (const one of tables) found.push(...(await columnsOf(one, scope, known, dialect)));
  for (const table of known.tables) {
    const [dataset, ...rest] = table.split(".");
    if (dataset!.toLowerCase() !== wanted) continue;
    const name = rest.join(".");
    found.push({ label: name, apply: quoted(name, dialect), type: "class", detail: "table" });
  }
  if (found.length > 0 || parts.length < 2) return found;
  return columnsOf({ alias: wanted, table: parts }, scope, known, dialect);
}

async function scopeColumns(scope: Scope, known: Names, dialect: Dialect): Promise<Choice[]> {
  const each = await Promise.all(scope.tables.map((one) => columnsOf(one, scope, known, dialect)));
  const seen = new Set<string>();
  return each.flat().filter((one) => !seen.has(one.label) && seen.add(one.label));
}

async function columnsOf(one: NamedTable, scope: Scope, known: Names, dialect: Dialect, depth = 0): Promise<Choice[]> {
  const expression = one.table.length === 1 ? scope.expressions.get(one.table[0]!.toLowerCase()) : undefined;
  if (expression !== undefined && depth < 4) {
    const stars = await Promise.all(expression.from.map((next) => columnsOf(next, scope, known, dialect, depth + 1)));
    const named = expression.columns.map((name) => choice(name, one.alias, dialect));
    return [...named, ...stars.flat()];
  }
  const name = known.tables.find((table) => table.toLowerCase() === one.table.join(".").toLowerCase());
  if (name === undefined) return [];
  return (await tableColumns(name)).map((column) => choice(column.name, `${column.type} · ${one.alias}`, dialect));
}

const choice = (name: string, detail: string, dialect: Dialect): Choice => ({
  label: name,
  apply: quoted(name, dialect),
  type: "property",
  detail,
  boost: 50,
});

const scopeNames = (scope: Scope, dialect: Dialect): Choice[] => [
  ...[...scope.expressions.keys()].map((name) => ({ label: name, apply: quoted(name, dialect), type: "class", detail: "WITH", boost: 30 })),
  ...scope.tables
    .filter((one) => one.alias !== one.table.at(-1))
    .map((one) => ({ label: one.alias, apply: quoted(one.alias, dialect), type: "variable", detail: one.table.join("."), boost: 30 })),
];

function everywhere(known: Names, dialect: Dialect): Choice[] {
  const datasets = [...new Set(known.tables.map((table) => table.split(".")[0]!))];
  return [
    ...datasets.map((name) => ({ label: name, apply: quoted(name, dialect), type: "namespace", detail: "dataset", boost: 20 })),
    ...known.tables.map((name) => ({ label: name, apply: quotedTable(name, dialect), type: "class", detail: "table", boost: 15 })),
    ...known.functions.map(functionChoice),
    ...known.keywords.map((word) => ({ label: word, type: "keyword", boost: -50 })),
  ];
}

function functionChoice({ name, kind, parameters, description }: FunctionSignature): Choice {
  const signatures = parameters.slice(0, 6).map((one) => `${name}(${one.join(", ")})`);
  return {
    label: name,
    type: "function",
    detail: `(${(parameters[0] ?? []).join(", ")})${parameters.length > 1 ? " …" : ""}`,
    info: () => {
      const shown = document.createElement("div");
      for (const text of [...signatures, kind, description ?? ""]) {
        const line = document.createElement("div");
        line.textContent = text;
        if (text !== "") shown.append(line);
      }
      return shown;
    },
    apply: (view, _, from, to) => {
      const hasParenthesis = view.state.sliceDoc(to, to + 1) === "(";
      const insert = hasParenthesis ? name : `${name}()`;
      const isEmpty = (parameters[0] ?? []).length === 0;
      view.dispatch({ changes: { from, to, insert }, selection: { anchor: from + name.length + (isEmpty && !hasParenthesis ? 2 : 1) } });
    },
  };
}

function knownNames(): Promise<Names> {
  if (names === null || Date.now() - names.asked > FRESH_MS) {
    const found = completion().then(
      ({ tables = [], views = [], functions = [], keywords = [] }) => ({ tables: [...tables, ...views], functions, keywords }),
      () => {
        names = null;
        return NOTHING;
      },
    );
    names = { asked: Date.now(), found };
  }
  return names.found;
}

function tableColumns(name: string): Promise<Column[]> {
  const known = columns.get(name);
  if (known !== undefined && Date.now() - known.asked < FRESH_MS) return known.found;
  const found = completion([name]).then(
    (answer) => answer.columns?.[name] ?? [],
    () => {
      columns.delete(name);
      return [];
    },
  );
  columns.set(name, { asked: Date.now(), found });
  return found;
}
