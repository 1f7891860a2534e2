/** The list of keys, in which they can be changed. */

import { useState } from "preact/hooks";

import { ACTIONS, chooseKey, doubled, FIXED, keyOf, keyText, shownKey, usualKeys } from "../state/keys";
import { Dialog } from "../theme/Dialog";

const GROUPS = ["Run", "Text", "Tabs", "Page"] as const;

export function Keys({ close }: { close: () => void }) {
  const [changing, change] = useState<string | null>(null);
  const twice = doubled(keyOf.value);
  const onKey = (event: KeyboardEvent, id: string): void => {
    if (event.key === "Tab") return;
    event.preventDefault();
    event.stopPropagation();
    const key = keyText(event);
    if (key === "") return;
    if (key !== "Escape" || id === "stop") chooseKey(id, key);
    change(null);
  };
  const shown = (id: string): string =>
    changing === id ? "press a key" : id === "tab-1" ? "Alt+1…9" : shownKey(keyOf.value[id]!);
  const listed = ACTIONS.filter(({ id }) => !/^tab-[2-9]$/.test(id));
  return (
    <Dialog title="Keys" close={close}>
      <div class="keys">
        {GROUPS.map((group) => (
          <section key={group}>
            <h3>{group}</h3>
            <dl>
              {listed
                .filter((action) => action.group === group)
                .map(({ id, label }) => (
                  <div key={id}>
                    <dt>{id === "tab-1" ? "Tab 1 to 9" : label}</dt>
                    <dd>
                      <button
                        type="button"
                        class={twice.has(id) ? "key twice" : "key"}
                        title={twice.has(id) ? "Another action has this key too" : "Click, then press another key"}
                        disabled={id === "tab-1"}
                        onClick={() => change(id)}
                        onBlur={() => change(null)}
                        onKeyDown={(event) => changing === id && onKey(event, id)}
                        aria-label={`${shown(id)}, key of: ${label}`}
                      >
                        {shown(id)}
                      </button>
                    </dd>
                  </div>
                ))}
            </dl>
          </section>
        ))}
        {["Editor", "Result"].map((group) => (
          <section key={group}>
            <h3>{group}</h3>
            <dl>
              {FIXED.filter((one) => one.group === group).map((one) => (
                <div key={one.key}>
                  <dt>{one.label}</dt>
                  <dd>
                    <kbd>{one.key}</kbd>
                  </dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
      <footer>
        <span class="weak">Click a key to change it.</span>
        <button type="button" onClick={usualKeys}>
          Usual keys
        </button>
      </footer>
    </Dialog>
  );
}
