/** The page: catalog at the left, the editor above the results. */

import { useEffect, useRef, useState } from "preact/hooks";

import { CatalogTree } from "../catalog/CatalogTree";
import { TablePage } from "../catalog/TablePage";
import { forgetNames } from "../editor/complete";
import { type EditorHandle, forgetState } from "../editor/Editor";
import { linkedIn } from "../state/link";
import { loadHistory } from "../state/history";
import { loadKeys } from "../state/keys";
import { divide, isNarrow, layout, loadLayout, type Pane, showPane } from "../state/panes";
import { dropAllRuns, dropRuns, isRunning, stopRun } from "../state/runs";
import { announced, begin, info, isTold, tell, wantsToken } from "../state/session";
import { activate, activeId, activeTab, closeTab, loadTabs, openTab, openTable, openText, reopenTab, saveLast, tabs } from "../state/tabs";
import { Splitter } from "../theme/Splitter";
import { Keys } from "./Keys";
import { LogIn } from "./LogIn";
import { nextPart } from "./parts";
import { listen } from "./shortcuts";
import { Tabs } from "./Tabs";
import { TopBar } from "./TopBar";
import { Workbench } from "./Workbench";
import { formatTab, runTab, shareTab } from "./work";

const WIDEST_CATALOG = 600;

/** Put a name into the text as soon as there is an editor: a tab that was just opened has none yet. */
function insertSoon(editor: { current: EditorHandle | null }, name: string, frames = 120): void {
  requestAnimationFrame(() => {
    if (editor.current !== null) editor.current.insert(name);
    else if (frames > 0) insertSoon(editor, name, frames - 1);
  });
}

export function App() {
  const [isReady, ready] = useState(false);
  const [areKeysShown, showKeys] = useState(false);
  const [entries, enter] = useState(0);
  const editor = useRef<EditorHandle | null>(null);

  useEffect(() => {
    const open = (): void => {
      const linked = linkedIn(location.hash);
      if (linked === null) return;
      const { sql, title, engine, asOf } = linked;
      openText({ text: sql, ...(title && { title }), ...(engine && { engine }), ...(asOf && { asOf }) });
      history.replaceState(null, "", location.href.split("#")[0]); // else a reload opens it again
      tell("The text of the link is shown. It has not run.");
    };
    void Promise.all([loadTabs(), loadHistory(), loadKeys(), loadLayout(), begin()]).then(() => {
      open();
      ready(true);
    });
    window.addEventListener("hashchange", open);
    const leave = (): void => {
      saveLast();
      dropAllRuns();
    };
    window.addEventListener("pagehide", leave);
    document.addEventListener("visibilitychange", saveLast);
    let wasNarrow = isNarrow();
    const fold = (): void => {
      // in a window that becomes narrow the catalog would be all that one sees
      if (isNarrow() && !wasNarrow) layout.value = { ...layout.value, isCatalogShown: false };
      wasNarrow = isNarrow();
    };
    window.addEventListener("resize", fold);
    return () => {
      window.removeEventListener("resize", fold);
      window.removeEventListener("hashchange", open);
      window.removeEventListener("pagehide", leave);
      document.removeEventListener("visibilitychange", saveLast);
    };
  }, []);

  const close = (id: string): void => {
    dropRuns(id);
    forgetState(id);
    closeTab(id);
  };
  const pane = (name: Pane) => (): void => showPane(activeId.value, name);
  useEffect(
    () =>
      listen({
        run: () => runTab(editor.current, false),
        "run-all": () => runTab(editor.current, true),
        stop: (event) => {
          const isThere = document.activeElement?.closest(".lower") != null || document.activeElement === document.body;
          if (!isThere || !isRunning(activeId.value)) return false;
          event.preventDefault();
          return stopRun(activeId.value);
        },
        format: () => void formatTab(editor.current),
        share: () => void shareTab(),
        "new-tab": () => void openTab({}),
        "close-tab": () => close(activeId.value),
        "reopen-tab": () => reopenTab(),
        ...Object.fromEntries(
          Array.from({ length: 9 }, (_, at) => [
            `tab-${at + 1}`,
            () => {
              const tab = tabs.value[at];
              if (tab !== undefined) activate(tab.id);
            },
          ]),
        ),
        "next-pane": () => nextPart(1, editor.current),
        "previous-pane": () => nextPart(-1, editor.current),
        keys: () => showKeys(true),
        "keys-too": () => showKeys(true),
        "show-result": pane("result"),
        "show-chart": pane("chart"),
        "show-blocks": pane("blocks"),
        "show-history": pane("history"),
      }),
    [],
  );

  const tab = activeTab.value;
  const { isCatalogShown, catalog, editor: editorPart } = layout.value;
  const frame = useRef<HTMLDivElement>(null);
  useEffect(() => {
    frame.current?.style.setProperty("--catalog", `${catalog}px`);
    frame.current?.style.setProperty("--editor", `${editorPart}%`);
  }, [catalog, editorPart, isReady]);
  return (
    <div class={isCatalogShown ? "frame" : "frame without-catalog"} ref={frame}>
      <TopBar isCatalogShown={isCatalogShown} toggleCatalog={() => divide({ isCatalogShown: !isCatalogShown })} showKeys={() => showKeys(true)} />
      {isReady && isCatalogShown && (info.value !== null || wantsToken.value === null) && (
        <aside class="side" aria-label="Catalog and its width">
          <div class="catalog" key={entries}>
            <CatalogTree
              insert={(name) => {
                if (isNarrow()) divide({ isCatalogShown: false });
                if (activeTab.value?.kind !== "sql") openTab({});
                insertSoon(editor, name);
              }}
              open={(table) => {
                if (isNarrow()) divide({ isCatalogShown: false });
                openTable(table);
              }}
            />
          </div>
          <Splitter
            label="Width of the catalog"
            isVertical
            value={catalog}
            least={160}
            most={WIDEST_CATALOG}
            step={20}
            valueAt={({ x }) => x}
            change={(value) => divide({ catalog: value })}
          />
        </aside>
      )}
      <main class="work">
        {isReady && <Tabs close={close} />}
        {isReady && tab?.kind === "sql" && (
          <Workbench
            tab={tab}
            editor={editor}
            run={() => runTab(editor.current, false)}
            runAll={() => runTab(editor.current, true)}
            format={() => void formatTab(editor.current)}
            share={() => void shareTab()}
          />
        )}
        {isReady && tab?.kind === "table" && (
          <div class="table-page" id="tab-panel" role="tabpanel" aria-label={tab.title} key={`${tab.id}:${entries}`}>
            <TablePage name={tab.table ?? ""} version={tab.version ?? null} open={(sql) => openTab({ text: sql })} />
          </div>
        )}
      </main>
      <div class={isTold.value ? "announced told" : "announced"} role="status" aria-live="polite">
        {announced.value}
      </div>
      {wantsToken.value !== null && (
        <LogIn
          done={() => {
            forgetNames();
            enter((count) => count + 1); // the catalog asks again
          }}
        />
      )}
      {areKeysShown && <Keys close={() => showKeys(false)} />}
    </div>
  );
}
