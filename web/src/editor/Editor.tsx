/** The editor of a tab's text, by CodeMirror. */

import { autocompletion, closeBrackets, closeBracketsKeymap, closeCompletion, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { sql } from "@codemirror/lang-sql";
import { bracketMatching, indentOnInput } from "@codemirror/language";
import { search, searchKeymap } from "@codemirror/search";
import { Compartment, EditorState, type Extension } from "@codemirror/state";
import {
  drawSelection,
  dropCursor,
  EditorView,
  highlightActiveLine,
  highlightActiveLineGutter,
  keymap,
  lineNumbers,
  placeholder,
} from "@codemirror/view";
import { useLayoutEffect, useRef } from "preact/hooks";

import { tabs } from "../state/tabs";
import type { Tab } from "../state/types";
import { completer } from "./complete";
import { colours, duckdbDialect, look, sparkDialect } from "./dialect";
import { type Marks, marks, setMarks } from "./marks";
import { dialectOf } from "./words";

const LABEL = "SQL. To leave the editor with Tab, press Escape first.";

/** What the page does with the text of the editor. */
export interface EditorHandle {
  text(): string;
  selection(): { from: number; to: number };
  insert(text: string): void;
  /** Replace a part; undo brings it back. */
  replace(from: number, to: number, insert: string): void;
  show(at: number): void;
  /** Close what hangs over the text. */
  closeChoices(): void;
  focus(): void;
}

export interface EditorProps {
  tab: Tab;
  isSpark: boolean;
  marks: Marks;
  changed: (tab: string, text: string) => void;
  handle: (handle: EditorHandle | null) => void;
}

const language = new Compartment();
/** The states of tabs that are not shown: their undo, selection and scroll position. */
const states = new Map<string, EditorState>();

export const forgetState = (tab: string): void => void states.delete(tab);

export function Editor({ tab, isSpark, marks: shown, changed, handle }: EditorProps) {
  const place = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  Object.assign(now, { tab: tab.id, isSpark, changed });

  useLayoutEffect(() => {
    const nonce = document.querySelector<HTMLMetaElement>("meta[property=csp-nonce]")?.nonce ?? "";
    nonceOfPage ||= nonce;
    const made = new EditorView({ parent: place.current!, state: states.get(tab.id) ?? stateOf(tab) });
    view.current = made;
    handle(handleOf(made));
    return () => {
      states.set(now.tab, made.state);
      handle(null);
      made.destroy();
    };
  }, []);

  const before = useRef(tab.id);
  useLayoutEffect(() => {
    const editor = view.current;
    if (editor === null || before.current === tab.id) return;
    states.set(before.current, editor.state);
    before.current = tab.id;
    editor.setState(states.get(tab.id) ?? stateOf(tab));
  }, [tab.id]);

  useLayoutEffect(() => {
    const editor = view.current;
    // what was typed since this was drawn is in the tab already: only a change from outside differs from it
    const text = tabs.peek().find((one) => one.id === tab.id)?.text;
    if (editor === null || text === undefined || editor.state.doc.toString() === text) return;
    editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: text } });
  }, [tab.id, tab.text]);

  useLayoutEffect(() => {
    view.current?.dispatch({ effects: language.reconfigure(languageOf(isSpark)) });
  }, [tab.id, isSpark]);

  useLayoutEffect(() => {
    view.current?.dispatch({ effects: setMarks.of(shown) });
  }, [tab.id, shown.running?.from, shown.running?.to, shown.wrong?.from, shown.wrong?.to]);

  return <div class="editor" ref={place} />;
}

/** What the editor shows now. States outlive the component, so what they call is here. */
const now = { tab: "", isSpark: false, changed: (_tab: string, _text: string): void => undefined };

const languageOf = (isSpark: boolean): Extension => sql({ dialect: isSpark ? sparkDialect : duckdbDialect }).language;

let nonceOfPage = "";

function stateOf(tab: Tab): EditorState {
  return EditorState.create({
    doc: tab.text,
    extensions: [
      EditorView.cspNonce.of(nonceOfPage),
      lineNumbers(),
      highlightActiveLineGutter(),
      highlightActiveLine(),
      history(),
      drawSelection(),
      dropCursor(),
      indentOnInput(),
      bracketMatching(),
      closeBrackets(),
      search({ top: true }),
      autocompletion({ override: [completer(() => dialectOf(now.isSpark))], icons: false, maxRenderedOptions: 60 }),
      language.of(languageOf(now.isSpark)),
      keymap.of([...closeBracketsKeymap, ...defaultKeymap, ...searchKeymap, ...historyKeymap, ...completionKeymap, indentWithTab]),
      EditorState.allowMultipleSelections.of(true),
      EditorView.contentAttributes.of({ "aria-label": LABEL, autocapitalize: "off", spellcheck: "false" }),
      EditorView.lineWrapping,
      placeholder("select …"),
      EditorView.updateListener.of((update) => {
        if (update.docChanged) now.changed(now.tab, update.state.doc.toString());
      }),
      marks,
      colours,
      look,
    ],
  });
}

function handleOf(view: EditorView): EditorHandle {
  return {
    text: () => view.state.doc.toString(),
    selection: () => {
      const { from, to } = view.state.selection.main;
      return { from, to };
    },
    insert: (text) => {
      view.dispatch(view.state.replaceSelection(text), { scrollIntoView: true });
      view.focus();
    },
    replace: (from, to, insert) => {
      view.dispatch({ changes: { from, to, insert }, selection: { anchor: from + insert.length }, scrollIntoView: true });
      view.focus();
    },
    show: (at) => {
      view.dispatch({ selection: { anchor: Math.min(at, view.state.doc.length) }, scrollIntoView: true });
      view.focus();
    },
    closeChoices: () => void closeCompletion(view),
    focus: () => view.focus(),
  };
}
