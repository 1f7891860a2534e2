/** The tree of datasets, tables and columns. */

import { useEffect, useId, useMemo, useRef, useState } from "preact/hooks";

import { RequestFailed, completion, table as askTable, tables as askTables } from "../api/client";
import type { Column } from "../api/types";
import "./catalog.css";
import { quotedName, quotedTable } from "./text";
import { type KnownTable, type TreeRow, rowsOf, stepOf, typedAhead } from "./tree";

const TYPED_MS = 700;
/** Tables whose columns a search asks for at once. */
const MOST_SEARCHED = 100;

/** `insert` puts a name into the text; `open` shows the page of a table. */
export function CatalogTree({ insert, open }: { insert: (name: string) => void; open: (table: string) => void }) {
  const catalog = useCatalog();
  const [search, setSearch] = useState("");
  const [opened, setOpened] = useState<ReadonlySet<string>>(new Set());
  const [active, setActive] = useState<string | null>(null);
  const list = useRef<HTMLUListElement>(null);
  const typed = useRef({ text: "", at: 0 });
  const id = useId();
  const { tables, columns } = catalog;

  useEffect(() => {
    if (tables !== null && tables.length <= 30) setOpened(new Set(tables.map(({ name }) => name.slice(0, name.indexOf(".")))));
  }, [tables]);
  useEffect(() => {
    if (search.trim().length > 1) catalog.loadAll();
  }, [search]);

  const rows = useMemo(() => rowsOf(tables ?? [], columns, opened, search), [tables, columns, opened, search]);
  const at = Math.max(0, rows.findIndex((row) => row.key === active));

  const focus = (to: number): void => {
    const row = rows[to];
    if (row === undefined) return;
    setActive(row.key);
    const item = list.current?.children[to];
    if (item instanceof HTMLElement) item.focus();
  };
  const set = (row: TreeRow, isOpen: boolean): void => {
    const now = new Set(opened);
    if (isOpen) now.add(row.key);
    else now.delete(row.key);
    setOpened(now);
    if (isOpen && row.kind === "table") catalog.load(row.key);
  };
  const put = (row: TreeRow): void => {
    if (row.kind === "column") insert(quotedName(row.label));
    else if (row.kind === "table") insert(quotedTable(row.key));
    else if (row.kind === "dataset") insert(quotedName(row.label));
  };
  const enter = (row: TreeRow): void => {
    if (row.kind === "table") open(row.key);
    else if (row.kind === "column") put(row);
    else set(row, row.isOpen !== true);
  };

  const onKey = (event: KeyboardEvent): void => {
    const row = rows[at];
    if (row === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Enter") {
      if (event.shiftKey) put(row);
      else enter(row);
    } else if (event.key === "Insert") {
      put(row);
    } else if (event.key === " ") {
      if (row.isOpen !== null) set(row, !row.isOpen);
    } else if (event.key.length === 1) {
      const now = performance.now();
      const text = now - typed.current.at < TYPED_MS ? typed.current.text + event.key : event.key;
      typed.current = { text, at: now };
      const to = typedAhead(rows, at, text);
      if (to === null) return;
      focus(to);
    } else {
      const step = stepOf(rows, at, event.key);
      if (step === null) return;
      if ("to" in step) focus(step.to);
      else set(row, "open" in step);
    }
    event.preventDefault();
  };

  return (
    <nav class="tree" aria-label="Catalog">
      <div class="catalog-search">
        <label for={id} class="catalog-hidden">
          Search tables and columns
        </label>
        <input
          id={id}
          type="search"
          value={search}
          placeholder="Search tables, columns"
          dir="auto"
          autocomplete="off"
          spellcheck={false}
          onInput={(event) => setSearch(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key !== "ArrowDown") return;
            event.preventDefault();
            focus(at);
          }}
        />
        <button type="button" aria-label="Look for new tables" title="Look for new tables" onClick={catalog.refresh}>
          ⟳
        </button>
      </div>
      {catalog.problem !== null && (
        <p class="catalog-problem" role="alert">
          {catalog.problem}
        </p>
      )}
      {tables !== null && rows.length === 0 && (
        <p class="catalog-note" role="status">
          {tables.length === 0 ? "There is no table that you may read." : "Nothing has this name."}
        </p>
      )}
      {rows.length > 0 && (
        <ul ref={list} role="tree" aria-label="Datasets, tables and columns" onKeyDown={onKey}>
          {rows.map((row, number) => (
            <Item
              key={row.key}
              row={row}
              isActive={number === at}
              onFocus={() => setActive(row.key)}
              onToggle={() => set(row, row.isOpen !== true)}
              onPut={() => put(row)}
              onOpen={() => row.kind === "table" && open(row.key)}
            />
          ))}
        </ul>
      )}
      <p class="catalog-keys">
        <kbd>Enter</kbd> opens a table, <kbd>Shift+Enter</kbd> or a double click inserts the name.
      </p>
    </nav>
  );
}

interface ItemProps {
  row: TreeRow;
  isActive: boolean;
  onFocus: () => void;
  onToggle: () => void;
  onPut: () => void;
  onOpen: () => void;
}

function Item({ row, isActive, onFocus, onToggle, onPut, onOpen }: ItemProps) {
  return (
    <li
      role="treeitem"
      aria-level={row.level}
      aria-posinset={row.place}
      aria-setsize={row.size}
      aria-expanded={row.isOpen ?? undefined}
      aria-selected={isActive}
      tabIndex={isActive ? 0 : -1}
      class={`catalog-row catalog-${row.kind}`}
      onFocus={onFocus}
      onClick={(event) => {
        event.currentTarget.focus();
        if (row.isOpen !== null) onToggle();
      }}
      onDblClick={onPut}
    >
      <span class="catalog-arrow" aria-hidden="true">
        {row.isOpen === null ? "" : row.isOpen ? "▾" : "▸"}
      </span>
      <bdi class="catalog-name" title={row.label}>
        {row.label}
      </bdi>
      {row.detail !== "" && (
        <>
          {" "}
          <span class="catalog-detail">{row.detail}</span>
          {row.kind === "dataset" && <span class="catalog-hidden">{row.detail === "1" ? " table" : " tables"}</span>}
        </>
      )}
      {row.kind === "table" && (
        <button
          type="button"
          tabIndex={-1}
          aria-hidden="true"
          title="Open the table's page"
          onClick={(event) => {
            event.stopPropagation();
            onOpen();
          }}
          onDblClick={(event) => event.stopPropagation()}
        >
          Open
        </button>
      )}
    </li>
  );
}

function useCatalog() {
  const [tables, setTables] = useState<KnownTable[] | null>(null);
  const [columns, setColumns] = useState<ReadonlyMap<string, Column[]>>(new Map());
  const [problem, setProblem] = useState<string | null>(null);
  const asked = useRef(new Set<string>());

  const add = (found: [string, Column[]][]): void => setColumns((known) => new Map([...known, ...found]));
  const tell = (error: unknown): void =>
    setProblem(error instanceof RequestFailed ? `${error.problem.detail} ${error.problem.hint ?? ""}`.trim() : String(error));

  const refresh = (): void => {
    asked.current.clear();
    askTables().then((found) => {
      setTables(found.tables);
      setColumns(new Map());
      setProblem(null);
    }, tell);
  };
  useEffect(refresh, []);

  const load = (name: string): void => {
    if (asked.current.has(name)) return;
    asked.current.add(name);
    askTable(name).then(
      (found) => add([[name, found.columns]]),
      (error: unknown) => {
        asked.current.delete(name);
        tell(error);
      },
    );
  };
  const loadAll = (): void => {
    const names = (tables ?? []).map((one) => one.name).filter((name) => !asked.current.has(name));
    if (names.length === 0) return;
    const some = names.slice(0, MOST_SEARCHED);
    some.forEach((name) => asked.current.add(name));
    completion(some).then((found) => add(Object.entries(found.columns as Record<string, Column[]>)), tell);
  };
  return { tables, columns, problem, refresh, load, loadAll };
}
