/** The statements that ran in this browser, with a search. */

import { useState } from "preact/hooks";

import { forgetHistory, found, history } from "../state/history";
import type { PastRun } from "../state/types";
import { useClock } from "../results/Status";
import { agoText, durationText, plural } from "../theme/text";

const SHOWN = 100;

export function History({ open }: { open: (past: PastRun) => void }) {
  const [search, setSearch] = useState("");
  const [most, setMost] = useState(SHOWN);
  useClock(true, 20_000);
  const all = found(history.value, search);
  return (
    <section class="history" aria-label="History">
      <div class="history-bar">
        <input
          type="search"
          aria-label="Search the history"
          placeholder="Search statements and errors"
          value={search}
          onInput={(event) => setSearch(event.currentTarget.value)}
        />
        <span class="weak">{plural(all.length, "statement")}</span>
        <span class="space" />
        {history.value.length > 0 && (
          <button type="button" class="quiet" onClick={() => confirm("Delete the history of this browser?") && forgetHistory()}>
            Delete all
          </button>
        )}
      </div>
      {all.length === 0 && <p class="message">{search === "" ? "What you run is listed here, in this browser only." : "No statement has these words."}</p>}
      <ol>
        {all.slice(0, most).map((past) => (
          <li key={past.id} class={past.state}>
            <button type="button" title="Open in a tab" onClick={() => open(past)}>
              <code>{past.sql.slice(0, 400)}</code>
              <span class="facts">
                <span title={new Date(past.at).toLocaleString()}>{agoText(past.at, Date.now())}</span>
                {past.state === "finished" && <span>{plural(past.rows, "row")}</span>}
                <span>{past.state === "cancelled" ? `stopped after ${durationText(past.milliseconds)}` : durationText(past.milliseconds)}</span>
                {past.engine === "spark" && <span>Spark</span>}
                {past.asOf !== null && <span>as of {new Date(past.asOf).toLocaleString()}</span>}
                {past.error !== null && <span class="bad">✕ {past.error.slice(0, 200)}</span>}
              </span>
            </button>
          </li>
        ))}
      </ol>
      {all.length > most && (
        <button type="button" onClick={() => setMost(most + SHOWN)}>
          Show more
        </button>
      )}
    </section>
  );
}
