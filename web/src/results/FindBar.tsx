/** Finds a text in the rows, also in those that are not shown. */

import { useEffect, useRef, useState } from "preact/hooks";

import type { Cell } from "../grid/selection";
import { announce } from "../state/session";
import { countText } from "../theme/text";

interface FindBarProps {
  find: (text: string, signal: AbortSignal, progress: (rows: number) => void) => Promise<Cell | null>;
  found: (cell: Cell) => void;
  close: () => void;
}

export function FindBar({ find, found, close }: FindBarProps) {
  const [text, setText] = useState("");
  const [says, say] = useState("");
  const [isBusy, busy] = useState(false);
  const stop = useRef<AbortController | null>(null);
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => {
    field.current?.focus();
    return () => stop.current?.abort();
  }, []);

  const next = async (): Promise<void> => {
    stop.current?.abort();
    if (text === "") return;
    const now = (stop.current = new AbortController());
    busy(true);
    say("");
    try {
      const cell = await find(text, now.signal, (rows) => say(`${countText(rows)} rows searched`));
      const result = cell === null ? "Not found" : `Row ${countText(cell.row + 1)}`;
      if (cell !== null) found(cell);
      say(result);
      announce(result);
    } catch {
      say(now.signal.aborted ? "" : "The rows cannot be read any more.");
    } finally {
      if (stop.current === now) busy(false);
    }
  };

  return (
    <form
      class="find-bar"
      role="search"
      aria-label="Find in the result"
      onSubmit={(event) => {
        event.preventDefault();
        void next();
      }}
      onKeyDown={(event) => {
        if (event.key !== "Escape") return;
        event.stopPropagation();
        if (isBusy) {
          stop.current?.abort();
          busy(false);
          say("Stopped");
        } else close();
      }}
    >
      <input
        ref={field}
        type="search"
        aria-label="Text to find"
        placeholder="Find in all rows"
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
      />
      <button type="submit">Next</button>
      <span class="weak">{says}</span>
      <button type="button" class="quiet" aria-label="Close find" onClick={close}>
        ✕
      </button>
    </form>
  );
}
