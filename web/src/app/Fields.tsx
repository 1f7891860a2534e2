/** Fields for the parameters of a text, and for the time as of which tables are read. */

import { changeTab } from "../state/tabs";
import type { ParameterText, ParameterType, Tab } from "../state/types";

const TYPES: { type: ParameterType; label: string }[] = [
  { type: "automatic", label: "as written" },
  { type: "string", label: "text" },
  { type: "bigint", label: "whole number" },
  { type: "decimal", label: "decimal" },
  { type: "double", label: "float" },
  { type: "boolean", label: "true or false" },
  { type: "date", label: "date" },
  { type: "timestamp", label: "time" },
  { type: "null", label: "null" },
];

interface FieldsProps {
  tab: Tab;
  names: string[];
  isAsOfShown: boolean;
  closeAsOf: () => void;
  run: () => void;
}

export function Fields({ tab, names, isAsOfShown, closeAsOf, run }: FieldsProps) {
  if (names.length === 0 && !isAsOfShown) return null;
  const set = (name: string, change: Partial<ParameterText>): void => {
    const before = Object.hasOwn(tab.parameters, name) ? tab.parameters[name] : undefined;
    changeTab(tab.id, { parameters: { ...tab.parameters, [name]: { text: "", type: "automatic", ...before, ...change } } });
  };
  return (
    <form
      class="fields"
      aria-label="Parameters"
      onSubmit={(event) => {
        event.preventDefault();
        run();
      }}
    >
      {isAsOfShown && <AsOf tab={tab} close={closeAsOf} />}
      {names.map((name) => {
        const given = Object.hasOwn(tab.parameters, name) ? tab.parameters[name] : undefined;
        const label = /^\d+$/.test(name) ? `?${name}` : `$${name}`;
        return (
          <span class="field" key={name}>
            <label>
              <code>{label}</code>
              <input
                type="text"
                spellcheck={false}
                value={given?.text ?? ""}
                disabled={given?.type === "null"}
                onInput={(event) => set(name, { text: event.currentTarget.value })}
              />
            </label>
            <select
              aria-label={`Type of ${label}`}
              value={given?.type ?? "automatic"}
              onChange={(event) => set(name, { type: event.currentTarget.value as ParameterType })}
            >
              {TYPES.map(({ type, label: text }) => (
                <option key={type} value={type}>
                  {text}
                </option>
              ))}
            </select>
          </span>
        );
      })}
      <button type="submit" hidden>
        Run
      </button>
    </form>
  );
}

/** Every table is read as it was then. The field has the time of this computer's zone. */
function AsOf({ tab, close }: { tab: Tab; close: () => void }) {
  return (
    <span class="field">
      <label title="Every table is read as it was at this time">
        As of
        <input
          type="datetime-local"
          step="1"
          value={tab.asOf === null ? "" : localText(tab.asOf)}
          onChange={(event) => {
            const at = new Date(event.currentTarget.value);
            changeTab(tab.id, { asOf: Number.isNaN(at.getTime()) ? null : at.toISOString() });
          }}
        />
      </label>
      <button
        type="button"
        class="quiet"
        aria-label="Read the newest versions"
        title="Read the newest versions"
        onClick={() => {
          changeTab(tab.id, { asOf: null });
          close();
        }}
      >
        ✕
      </button>
    </span>
  );
}

function localText(iso: string): string {
  const at = new Date(iso);
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}
