/** The page of a table: columns, versions, files, blocks, health, sources. */

import { useId, useState } from "preact/hooks";

import { table as askTable } from "../api/client";
import type { TableDefinition } from "../api/types";
import { BlockMap } from "../blocks/BlockMap";
import "./catalog.css";
import { ColumnsOfTable } from "./ColumnsOfTable";
import { Differences } from "./Differences";
import { FilesOfTable } from "./FilesOfTable";
import { HealthOfTable } from "./HealthOfTable";
import { SourcesOfTable } from "./SourcesOfTable";
import { Versions } from "./Versions";
import { Awaited, Name, useAsked } from "./parts";
import { plainName } from "./rows";
import { momentText, selectText, sinceText } from "./text";
import { bytesText, countText } from "../theme/text";

const SECTIONS = ["Columns", "Versions", "Differences", "Blocks", "Files", "Health", "Sources"] as const;

type Section = (typeof SECTIONS)[number];

export interface TablePageProps {
  name: string;
  version: number | null;
  /** Puts a statement into the editor. */
  open: (sql: string) => void;
}

export function TablePage(props: TablePageProps) {
  return <VersionOfTable key={`${props.name} ${props.version ?? ""}`} {...props} />;
}

function VersionOfTable({ name, version: first, open }: TablePageProps) {
  const [version, setVersion] = useState(first);
  const [section, setSection] = useState<Section>("Columns");
  const [since, setSince] = useState<number | null>(null);
  const asked = useAsked(() => askTable(name, version === null ? {} : { version }), [name, version]);
  const show = (wanted: number | null): void => {
    setVersion(wanted);
    setSince(null);
  };
  const compare = (from: number, to: number): void => {
    setVersion(to);
    setSince(from);
    setSection("Differences");
  };
  return (
    <section class="table-view" aria-label={`Table ${name}`}>
      <Awaited asked={asked}>
        {(table) => (
          <>
            <Head table={table} isOld={version !== null} show={show} open={open} />
            <SectionTabs section={section} choose={setSection}>
              {section === "Columns" && <ColumnsOfTable table={table} version={version} />}
              {section === "Versions" && <Versions table={table} show={show} open={open} compare={compare} />}
              {section === "Differences" && <Differences table={table} since={since} compare={compare} />}
              {section === "Blocks" && (
                <BlockMap source={version === null ? { table: name } : { table: name, version }} />
              )}
              {section === "Files" && <FilesOfTable table={table} version={version} />}
              {section === "Health" && <HealthOfTable table={table} />}
              {section === "Sources" && <SourcesOfTable table={table} version={version} open={open} />}
            </SectionTabs>
          </>
        )}
      </Awaited>
    </section>
  );
}

interface HeadProps {
  table: TableDefinition;
  isOld: boolean;
  show: (version: number | null) => void;
  open: (sql: string) => void;
}

function Head({ table, isOld, show, open }: HeadProps) {
  return (
    <header class="table-head">
      <div class="table-title">
        <h1>
          <Name>{table.name}</Name>
        </h1>
        <button type="button" onClick={() => open(selectText(table.name, isOld ? table.version : null))}>
          Query
        </button>
        {!table.is_writable && <span class="table-chip">read only</span>}
      </div>
      {table.comment !== null && table.comment !== "" && (
        <p class="table-comment" dir="auto">
          {table.comment}
        </p>
      )}
      {isOld && (
        <p class="table-old" role="status">
          You look at version {table.version} of {momentText(table.committed)}.{" "}
          <button type="button" onClick={() => show(null)}>
            Show the newest
          </button>
        </p>
      )}
      <dl class="table-facts">
        <Fact name="Version">
          {table.version}, {table.operation}, <span title={momentText(table.committed)}>{sinceText(table.committed)}</span>
        </Fact>
        <Fact name="Rows">{countText(table.row_count)}</Fact>
        <Fact name="Size">
          {bytesText(table.data_bytes)} in {countText(table.file_count)} {table.file_count === 1 ? "file" : "files"}
        </Fact>
        <Names name="Key" values={table.key} />
        <Names name="Sorted by" values={table.sort_by} />
        <Names name="Partitioned by" values={table.partition_by} />
        <Pairs name="Checks" values={table.checks} />
        <Pairs name="Properties" values={table.properties} />
        <Pairs name="Tags" values={table.tags} />
      </dl>
    </header>
  );
}

function Fact({ name, children }: { name: string; children: preact.ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

const Names = ({ name, values }: { name: string; values: string[] }) =>
  values.length === 0 ? null : (
    <Fact name={name}>
      {values.map((value, at) => (
        <>
          {at > 0 && ", "}
          <Name>{plainName(value)}</Name>
        </>
      ))}
    </Fact>
  );

function Pairs({ name, values }: { name: string; values: Record<string, string | number> }) {
  const pairs = Object.entries(values);
  if (pairs.length === 0) return null;
  return (
    <Fact name={name}>
      {pairs.map(([key, value]) => (
        <span key={key} class="table-pair">
          <Name>{key}</Name>: <Name>{String(value)}</Name>
        </span>
      ))}
    </Fact>
  );
}

interface TabsProps {
  section: Section;
  choose: (section: Section) => void;
  children: preact.ComponentChildren;
}

/** Tabs as ARIA has them: arrows move, and only the chosen one is in the order of Tab. */
function SectionTabs({ section, choose, children }: TabsProps) {
  const id = useId();
  const onKey = (event: KeyboardEvent): void => {
    const at = SECTIONS.indexOf(section);
    const last = SECTIONS.length - 1;
    const to = { ArrowRight: at === last ? 0 : at + 1, ArrowLeft: at === 0 ? last : at - 1, Home: 0, End: last }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    choose(SECTIONS[to]!);
    const tabs = (event.currentTarget as HTMLElement).querySelectorAll<HTMLElement>("[role=tab]");
    tabs[to]?.focus();
  };
  return (
    <>
      <div class="table-tabs" role="tablist" aria-label="Parts of the table's page" onKeyDown={onKey}>
        {SECTIONS.map((one) => (
          <button
            key={one}
            type="button"
            role="tab"
            id={`${id}${one}`}
            aria-selected={one === section}
            aria-controls={`${id}panel`}
            tabIndex={one === section ? 0 : -1}
            onClick={() => choose(one)}
          >
            {one}
          </button>
        ))}
      </div>
      <div class="table-panel" role="tabpanel" id={`${id}panel`} aria-labelledby={`${id}${section}`}>
        {children}
      </div>
    </>
  );
}
