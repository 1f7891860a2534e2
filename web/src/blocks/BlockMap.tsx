/** The block map: each block of a table as a cell, coloured by what the plan did with it. */

import { useEffect, useId, useMemo, useState } from "preact/hooks";

import { RequestFailed, statement as askStatement, table as askTable, tableRows } from "../api/client";
import type { Column, Problem, ScanPlan } from "../api/types";
import { shareText, sinceText } from "../catalog/text";
import { bytesText, countText } from "../theme/text";
import { plainName } from "../catalog/rows";
import { Legend, StepsTable } from "./Totals";
import { MapCanvas } from "./MapCanvas";
import "./blocks.css";
import { type MapAnswer, type MapOf, type Shown, atVersion, conditionOf, load } from "./source";
import type { Theme } from "./verdicts";

/** The scans of a statement that ran, or a table with a condition. */
export type BlockSource =
  | { statement: string; plans: ScanPlan[] }
  | { table: string; version?: number; where?: string };

export function BlockMap({ source }: { source: BlockSource }) {
  return "table" in source ? <MapOfTable source={source} /> : <MapsOfStatement source={source} />;
}

function MapsOfStatement({ source }: { source: { statement: string; plans: ScanPlan[] } }) {
  const { statement, plans } = source;
  const [chosen, choose] = useState(0);
  const unasked = useTablesWithoutScan(statement, plans);
  const maps = useMemo(() => {
    const ran = plans.map((plan): MapOf => {
      return { table: plan.table, version: plan.version, where: null, columns: null, ran: { statement, plan } };
    });
    const idle = unasked.map(({ name, version }): MapOf => {
      return { table: name, version, where: null, columns: null, ran: null, isUnasked: true };
    });
    return [...ran, ...idle];
  }, [statement, plans, unasked]);
  const map = maps[Math.min(chosen, maps.length - 1)];
  if (map === undefined) {
    return (
      <section class="map" aria-label="Block map">
        <p class="map-note">This statement read no blocks: it needed no table, or its rows came from elsewhere.</p>
      </section>
    );
  }
  return (
    <section class="map" aria-label="Block map">
      {maps.length > 1 && (
        <div class="map-scans" role="group" aria-label="Scans of the statement">
          {maps.map((one, at) => (
            <button key={at} type="button" aria-pressed={one === map} onClick={() => choose(at)}>
              <bdi>{one.table}</bdi>
              {one.ran !== null && (
                <small dir="auto">{shortened(conditionOf(one.ran.plan) ?? "without a condition")}</small>
              )}
              {one.ran === null && <small>answered from metadata</small>}
            </button>
          ))}
        </div>
      )}
      <VersionedMap key={`${statement} ${chosen}`} first={map} />
    </section>
  );
}

const shortened = (text: string): string => (text.length > 40 ? `${text.slice(0, 40)}…` : text);

/** Tables that the statement named, and answered from metadata. */
function useTablesWithoutScan(id: string, plans: ScanPlan[]): { name: string; version: number }[] {
  const [found, setFound] = useState<{ name: string; version: number }[]>([]);
  useEffect(() => {
    let isOld = false;
    setFound([]);
    askStatement(id).then(
      ({ tables }) => {
        const idle = tables.filter((one) => !plans.some((plan) => plan.table === one.name));
        if (!isOld && idle.length > 0) setFound(idle);
      },
      () => undefined, // the statement is forgotten; the maps say so
    );
    return () => {
      isOld = true;
    };
  }, [id, plans]);
  return found;
}

function MapOfTable({ source }: { source: { table: string; version?: number; where?: string } }) {
  const [where, setWhere] = useState(source.where ?? "");
  const [typed, type] = useState(where);
  const id = useId();
  const map = useMemo((): MapOf => {
    const condition = where.trim() === "" ? null : where;
    return { table: source.table, version: source.version ?? null, where: condition, columns: null, ran: null };
  }, [source.table, source.version, where]);
  return (
    <section class="map" aria-label="Block map">
      <form
        class="map-condition"
        onSubmit={(event) => {
          event.preventDefault();
          setWhere(typed);
        }}
      >
        <label for={id}>What would a condition read?</label>
        <input
          id={id}
          value={typed}
          dir="auto"
          spellcheck={false}
          autocomplete="off"
          placeholder="such as id between 250 and 260"
          onInput={(event) => type(event.currentTarget.value)}
        />
        <button type="submit">Plan</button>
      </form>
      <VersionedMap key={`${source.table} ${source.version ?? ""} ${where}`} first={map} />
    </section>
  );
}

function VersionedMap({ first }: { first: MapOf }) {
  const [version, setVersion] = useState(first.version);
  const [shown, setShown] = useState<Shown>({ order: "file", column: null });
  const [only, choose] = useState<number | null>(null);
  const map = useMemo(() => (version === null ? first : atVersion(first, version)), [first, version]);
  const { answer, problem, isLoading } = useAnswer(map, shown);
  const theme = useTheme();
  return (
    <>
      <div class="map-bar">
        <OrderChoice map={map} column={answer?.blocks.facts.column ?? null} shown={shown} show={setShown} />
        <VersionSlider table={map.table} version={answer?.plan.version ?? version} choose={setVersion} />
        <span class="map-weak" role="status">
          {isLoading ? "Loading…" : ""}
        </span>
      </div>
      {problem !== null && (
        <p class="map-problem" role="alert">
          {problem.detail} {problem.hint}
        </p>
      )}
      {answer !== null && <Found answer={answer} map={map} theme={theme} only={only} choose={choose} />}
    </>
  );
}

interface FoundProps {
  answer: MapAnswer;
  map: MapOf;
  theme: Theme;
  only: number | null;
  choose: (only: number | null) => void;
}

function Found({ answer, map, theme, only, choose }: FoundProps) {
  const { plan, blocks } = answer;
  const counts = useMemo(() => blocks.counts(), [blocks]);
  const { total, kept } = plan;
  const size = `${countText(total.blocks)} ${total.blocks === 1 ? "block" : "blocks"} of ${plan.table}, version ${plan.version}`;
  const isIdle = map.isUnasked ?? false;
  const summary = isIdle
    ? `${size}: none was asked for, the answer came from metadata.`
    : `${size}: ${countText(kept.blocks)} to read, ${countText(total.blocks - kept.blocks)} dropped.`;
  return (
    <>
      <p class="map-summary">
        {summary}{" "}
        {!isIdle && (
          <>
            {bytesText(kept.fetch_bytes)} of {bytesText(total.data_bytes)} ({shareText(kept.fetch_bytes, total.data_bytes)}).
          </>
        )}
        {plan.filter !== null && !isIdle && ` ${plan.filter.charAt(0).toUpperCase()}${plan.filter.slice(1)}.`}
        {blocks.isBinned && ` Each cell stands for about ${countText(Math.round(total.blocks / blocks.length))} blocks.`}
      </p>
      <div class="map-parts">
        <MapCanvas blocks={blocks} summary={summary} theme={theme} only={only} />
        <Legend counts={counts} theme={theme} only={only} choose={choose} />
      </div>
      {!isIdle && <StepsTable plan={plan} />}
    </>
  );
}

function useAnswer(map: MapOf, shown: Shown) {
  const [answer, setAnswer] = useState<MapAnswer | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [isLoading, setLoading] = useState(true);
  useEffect(() => {
    const stop = new AbortController();
    setLoading(true);
    load(map, shown, stop.signal).then(
      (found) => {
        if (stop.signal.aborted) return;
        setAnswer(found);
        setProblem(null);
        setLoading(false);
      },
      (error: unknown) => {
        if (stop.signal.aborted) return;
        setLoading(false);
        setProblem(problemOf(error));
      },
    );
    return () => stop.abort();
  }, [map, shown]);
  return { answer, problem, isLoading };
}

function problemOf(error: unknown): Problem {
  if (error instanceof RequestFailed) return error.problem;
  return { type: "", title: "Error", status: 0, code: "page", detail: String(error), retryable: false };
}

interface OrderProps {
  map: MapOf;
  column: string | null;
  shown: Shown;
  show: (shown: Shown) => void;
}

function OrderChoice({ map, column, shown, show }: OrderProps) {
  const columns = useColumns(map.table, map.version);
  const id = useId();
  const path = shown.column ?? column;
  if (path === null) return null;
  const chosen = plainName(path);
  const known = columns.some((one) => one.name === chosen) ? columns : [{ name: chosen, type: "" }, ...columns];
  return (
    <div class="map-order">
      <label for={`${id}order`}>Order</label>
      <select
        id={`${id}order`}
        value={shown.order}
        onChange={(event) => show({ ...shown, order: event.currentTarget.value === "min" ? "min" : "file" })}
      >
        <option value="file">by file</option>
        <option value="min">by least value</option>
      </select>
      <label for={`${id}column`}>of</label>
      <select
        id={`${id}column`}
        value={chosen}
        onChange={(event) => show({ ...shown, column: `"${event.currentTarget.value.replaceAll('"', '""')}"` })}
      >
        {known.map(({ name }) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
    </div>
  );
}

const WITHOUT_BOUNDS = /^(list|map|struct|union)</;

function useColumns(table: string, version: number | null): Column[] {
  const [columns, setColumns] = useState<Column[]>([]);
  useEffect(() => {
    let isOld = false;
    askTable(table, version === null ? {} : { version }).then(
      (found) => {
        if (!isOld) setColumns(found.columns.filter((one) => !WITHOUT_BOUNDS.test(one.type)));
      },
      () => undefined, // the map itself says what is wrong
    );
    return () => {
      isOld = true;
    };
  }, [table, version]);
  return columns;
}

const MOST_VERSIONS = 500;

function VersionSlider(props: { table: string; version: number | null; choose: (version: number) => void }) {
  const { table, version, choose } = props;
  const versions = useVersions(table);
  const [wanted, want] = useState(version);
  const id = useId();
  useEffect(() => want(version), [version]);
  useEffect(() => {
    if (wanted === null || wanted === version) return undefined;
    const timer = setTimeout(() => choose(wanted), 120); // a drag passes many versions
    return () => clearTimeout(timer);
  }, [wanted]);
  if (versions.length < 2 || wanted === null) return null;
  const at = Math.max(0, versions.findIndex((one) => one.version === wanted));
  const { operation, committed } = versions[at]!;
  const text = `Version ${wanted}, ${operation}, ${sinceText(committed)}`;
  return (
    <div class="map-versions">
      <label for={id}>Version</label>
      <input
        id={id}
        type="range"
        min={0}
        max={versions.length - 1}
        value={at}
        aria-valuetext={text}
        onInput={(event) => want(versions[Number(event.currentTarget.value)]?.version ?? wanted)}
      />
      <output for={id}>{text}</output>
    </div>
  );
}

interface KnownVersion {
  version: number;
  operation: string;
  committed: string;
}

/** The versions of a table, the oldest first. */
function useVersions(table: string): KnownVersion[] {
  const [versions, setVersions] = useState<KnownVersion[]>([]);
  useEffect(() => {
    let isOld = false;
    tableRows(table, "versions", { most: MOST_VERSIONS }).then(
      ({ columns, rows }) => {
        const places = ["version", "operation", "committed_at"].map((name) => columns.findIndex((one) => one.name === name));
        const found = rows.map((row) => {
          const [version, operation, committed] = places.map((place) => row[place]);
          return { version: Number(version), operation: String(operation), committed: String(committed) };
        });
        if (!isOld) setVersions(found.reverse());
      },
      () => undefined, // without versions there is no slider
    );
    return () => {
      isOld = true;
    };
  }, [table]);
  return versions;
}

const DARK = "(prefers-color-scheme: dark)";

/** The system's theme, which a canvas does not follow by itself. */
function useTheme(): Theme {
  const [isDark, setDark] = useState(() => matchMedia(DARK).matches);
  useEffect(() => {
    const query = matchMedia(DARK);
    const follow = (): void => setDark(query.matches);
    query.addEventListener("change", follow);
    return () => query.removeEventListener("change", follow);
  }, []);
  return isDark ? "dark" : "light";
}
