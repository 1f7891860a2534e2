/** The line at the top: where one is, whether the server answers, and who one is. */

import { connection, info, logOut } from "../state/session";
import { isKeeping } from "../state/store";

const CONNECTION = {
  connecting: ["…", "Connecting"],
  connected: ["●", "Connected"],
  unreachable: ["○", "The server does not answer"],
  refused: ["○", "Log in to continue"],
} as const;

interface TopBarProps {
  isCatalogShown: boolean;
  toggleCatalog: () => void;
  showKeys: () => void;
}

export function TopBar({ isCatalogShown, toggleCatalog, showKeys }: TopBarProps) {
  const [sign, text] = CONNECTION[connection.value];
  const caller = info.value?.caller;
  const engines = Object.entries(info.value?.engines ?? {}).map(([name, version]) => `${name} ${version}`);
  const isAnonymous = caller === undefined || caller.name === "anonymous";
  return (
    <header class="top">
      <button type="button" class="quiet" aria-expanded={isCatalogShown} aria-label="Catalog" title="Show or hide the catalog" onClick={toggleCatalog}>
        ☰
      </button>
      <h1>Underlay</h1>
      <span class={`connection ${connection.value}`} title={info.value === null ? text : `Underlay ${info.value.version}, ${engines.join(", ")}`}>
        <span aria-hidden="true">{sign}</span> {text}
      </span>
      {!isKeeping.value && (
        <span class="warn" title="The browser does not let this page keep anything: export tabs that you need.">
          Tabs are not kept
        </span>
      )}
      <span class="space" />
      {caller !== undefined && !isAnonymous && (
        <span class="caller" title={`May read ${caller.read.join(", ") || "nothing"}${caller.write.length > 0 ? `; may change ${caller.write.join(", ")}` : ""}`}>
          <bdi>{caller.name}</bdi>
        </span>
      )}
      {info.value !== null && !info.value.is_writable && (
        <span class="weak read-only" title="The server was started without --writable: statements only read">
          read only
        </span>
      )}
      {caller !== undefined && !isAnonymous && (
        <button type="button" class="quiet" onClick={logOut}>
          Log out
        </button>
      )}
      <button type="button" class="quiet" aria-label="Keys" title="List of keys (F1)" onClick={showKeys}>
        ?
      </button>
    </header>
  );
}
