/** The row of tabs. */

import { useEffect, useState } from "preact/hooks";

import { isRunning } from "../state/runs";
import { activate, activeId, changeTab, closedTabs, openTab, reopenTab, tabs } from "../state/tabs";
import { exportTabs, importTabs } from "../state/tabFiles";
import { tell } from "../state/session";
import type { Tab } from "../state/types";
import { MenuButton, type MenuItem } from "../theme/Menu";

const SHOWN_CLOSED = 12;

export function Tabs({ close }: { close: (id: string) => void }) {
  const onKey = (event: KeyboardEvent): void => {
    const at = tabs.value.findIndex((tab) => tab.id === activeId.value);
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: tabs.value.length - 1 }[event.key];
    if (event.key === "Delete") close(activeId.value);
    else if (to === undefined) return;
    else {
      const next = (to + tabs.value.length) % tabs.value.length;
      activate(tabs.value[next]!.id);
      document.querySelectorAll<HTMLElement>(".tabs [role=tab]")[next]?.focus();
    }
    event.preventDefault();
  };
  useEffect(() => {
    const shown = document.querySelector(".tabs .tab.active");
    shown?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [activeId.value]);
  return (
    <div class="tabs-bar">
      <div class="tabs" role="tablist" aria-label="Tabs" onKeyDown={onKey}>
        {tabs.value.map((tab) => (
          <TabButton key={tab.id} tab={tab} close={() => close(tab.id)} />
        ))}
      </div>
      <button type="button" class="quiet" aria-label="New tab" title="New tab (Alt+T)" onClick={() => openTab({})}>
        +
      </button>
      <MenuButton label="More of tabs" items={items(close)}>
        ⋯
      </MenuButton>
    </div>
  );
}

function TabButton({ tab, close }: { tab: Tab; close: () => void }) {
  const [isNaming, name] = useState(false);
  const isActive = tab.id === activeId.value;
  if (isNaming) {
    const done = (title: string): void => {
      name(false);
      if (title.trim() !== "") changeTab(tab.id, { title: title.trim().slice(0, 80) });
    };
    return (
      <input
        class="tab-name"
        aria-label="Name of the tab"
        value={tab.title}
        ref={(field) => field?.select()}
        onBlur={(event) => done(event.currentTarget.value)}
        onKeyDown={(event) => {
          event.stopPropagation();
          if (event.key === "Enter") done(event.currentTarget.value);
          if (event.key === "Escape") name(false);
        }}
      />
    );
  }
  return (
    <span class={`tab${isActive ? " active" : ""}`} role="none">
      <button
        type="button"
        role="tab"
        aria-selected={isActive}
        aria-controls={isActive ? "tab-panel" : undefined}
        tabIndex={isActive ? 0 : -1}
        title={`${tab.title}\nDouble-click to rename`}
        onClick={() => activate(tab.id)}
        onDblClick={() => name(tab.kind === "sql")}
        onAuxClick={(event) => event.button === 1 && close()}
      >
        {tab.kind === "table" && <span aria-hidden="true">▦ </span>}
        <bdi>{tab.title}</bdi>
        {isRunning(tab.id) && <span class="spinner" role="img" aria-label="running" />}
        <span
          class="tab-close"
          aria-hidden="true" // by keyboard: Delete, or Alt+W
          title="Close (Alt+W)"
          onClick={(event) => {
            event.stopPropagation();
            close();
          }}
        >
          ✕
        </span>
      </button>
    </span>
  );
}

function items(close: (id: string) => void): MenuItem[] {
  return [
    { label: "Close tab", act: () => close(activeId.value) },
    { label: "Export all tabs", note: "to a file", act: exportAll },
    { label: "Import tabs", note: "or a file of SQL", act: importSome },
    ...closedTabs.value.slice(0, SHOWN_CLOSED).map((tab) => ({
      label: `Reopen ${tab.title}`,
      note: tab.text.replace(/\s+/g, " ").slice(0, 40),
      act: () => reopenTab(tab.id),
    })),
  ];
}

function exportAll(): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([exportTabs()], { type: "application/json" }));
  link.download = "underlay-tabs.json";
  link.click();
  window.setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

function importSome(): void {
  const field = document.createElement("input");
  field.type = "file";
  field.accept = ".json,.sql";
  field.multiple = true;
  field.onchange = async () => {
    for (const file of field.files ?? []) {
      try {
        tell(`Opened ${await importTabs(file)} tabs of ${file.name}`);
      } catch (error) {
        tell((error as Error).message);
      }
    }
  };
  field.click();
}
