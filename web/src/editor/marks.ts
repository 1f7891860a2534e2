/** Marks in the text: what runs, and where the error is. */

import { type Extension, StateEffect, StateField } from "@codemirror/state";
import { Decoration, type DecorationSet, EditorView } from "@codemirror/view";

export interface Place {
  from: number;
  to: number;
}

export interface Marks {
  running: Place | null;
  wrong: (Place & { why: string }) | null;
}

export const setMarks = StateEffect.define<Marks>();

const running = Decoration.line({ class: "cm-running" });

const field = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(marks, transaction) {
    let next = transaction.docChanged ? marks.map(transaction.changes) : marks;
    for (const effect of transaction.effects) if (effect.is(setMarks)) next = decorated(transaction.state.doc, effect.value);
    return next;
  },
  provide: (known) => EditorView.decorations.from(known),
});

export const marks: Extension = field;

function decorated(doc: { length: number; lineAt(at: number): { from: number; to: number } }, given: Marks): DecorationSet {
  const found = [];
  const inside = (at: number): number => Math.min(Math.max(at, 0), doc.length);
  if (given.running !== null) {
    const end = inside(given.running.to);
    for (let at = inside(given.running.from); ; ) {
      const line = doc.lineAt(at);
      found.push(running.range(line.from));
      if (line.to >= end) break;
      at = line.to + 1;
    }
  }
  if (given.wrong !== null) {
    const [from, to] = [inside(given.wrong.from), inside(given.wrong.to)];
    if (to > from) found.push(Decoration.mark({ class: "cm-wrong", attributes: { title: given.wrong.why } }).range(from, to));
  }
  return Decoration.set(found, true);
}
