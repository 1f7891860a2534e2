/** How the editor colours SQL. */

import { HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { SQLDialect } from "@codemirror/lang-sql";
import { EditorView } from "@codemirror/view";
import { tags } from "@lezer/highlight";

const KEYWORDS =
  "select from where group by having order limit offset distinct all as on using join inner left right full outer cross natural " +
  "union intersect except with recursive materialized values insert into update set delete merge matched create or replace table " +
  "view drop alter add column rename to if exists not null and in is like between case when then else end cast try_cast any some " +
  "asc desc nulls first last over partition window rows range groups unbounded preceding following current row filter within " +
  "returning default primary key unique check constraint comment describe show explain analyze summarize truncate true false " +
  "ilike similar escape qualify pivot unpivot asof positional semi anti exclude replace sample tablesample lateral version " +
  "timestamp of for system_time collate at grouping sets rollup cube fetch only ties extract interval unnest";
const TYPES =
  "boolean bool tinyint smallint integer int bigint hugeint utinyint usmallint uinteger ubigint uhugeint int1 int2 int4 int8 " +
  "float float4 float8 real double decimal numeric varchar char text string blob bytea binary bit date time timestamptz " +
  "timestamp_s timestamp_ms timestamp_ns uuid json list struct map union enum";

export const duckdbDialect = SQLDialect.define({
  keywords: KEYWORDS,
  types: TYPES,
  doubleDollarQuotedStrings: true,
  specialVar: "$?",
  operatorChars: "*+-%<>!=&|~^/@#",
});

export const sparkDialect = SQLDialect.define({
  keywords: `${KEYWORDS} rlike distribute cluster sort`,
  types: TYPES,
  identifierQuotes: "`",
  doubleQuotedStrings: true,
  backslashEscapes: true,
  specialVar: ":?",
});

export const colours = syntaxHighlighting(
  HighlightStyle.define([
    { tag: tags.keyword, color: "var(--code-keyword)", fontWeight: "600" },
    { tag: [tags.string, tags.special(tags.string)], color: "var(--code-string)" },
    { tag: [tags.number, tags.bool, tags.null], color: "var(--code-number)" },
    { tag: tags.comment, color: "var(--text-weak)", fontStyle: "italic" },
    { tag: tags.typeName, color: "var(--code-type)" },
    { tag: tags.special(tags.name), color: "var(--code-number)", fontWeight: "600" },
  ]),
);

/** Sizes and colours of the editor's own parts. */
export const look = EditorView.theme({
  "&": { height: "100%", color: "var(--text)", backgroundColor: "var(--ground)", fontSize: "14px" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.55" },
  ".cm-content": { caretColor: "var(--text)", padding: "8px 0" },
  ".cm-cursor, .cm-dropCursor": { borderLeftColor: "var(--text)", borderLeftWidth: "2px" },
  "&.cm-focused": { outline: "none" },
  ".cm-gutters": { backgroundColor: "var(--ground)", color: "var(--text-weak)", border: "none", paddingLeft: "4px" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "var(--line-now)" },
  ".cm-selectionBackground, &.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground": {
    backgroundColor: "var(--selected)",
  },
  ".cm-running": { backgroundColor: "var(--accent-ground)", boxShadow: "inset 3px 0 var(--accent)" },
  ".cm-wrong": { textDecoration: "underline wavy var(--bad)", textUnderlineOffset: "3px", backgroundColor: "var(--bad-ground)" },
  ".cm-matchingBracket": { backgroundColor: "var(--accent-ground) !important", outline: "1px solid var(--line-strong)" },
  ".cm-placeholder": { color: "var(--text-weak)" },
  ".cm-tooltip": { backgroundColor: "var(--raised)", color: "var(--text)", border: "1px solid var(--line-strong)", borderRadius: "4px" },
  ".cm-tooltip-autocomplete > ul": { fontFamily: "var(--mono)", fontSize: "13px", maxHeight: "16em" },
  ".cm-tooltip-autocomplete > ul > li": { padding: "3px 8px !important", lineHeight: "1.4" },
  ".cm-tooltip-autocomplete > ul > li[aria-selected]": { backgroundColor: "var(--accent) !important", color: "var(--on-accent) !important" },
  ".cm-completionDetail": { color: "var(--text-weak)", fontStyle: "normal", marginLeft: "1em" },
  "li[aria-selected] .cm-completionDetail": { color: "inherit" },
  ".cm-completionMatchedText": { textDecoration: "none", fontWeight: "700" },
  ".cm-completionInfo": { padding: "6px 10px", maxWidth: "340px", fontSize: "12.5px" },
  ".cm-panels": { backgroundColor: "var(--raised)", color: "var(--text)" },
  ".cm-panel.cm-search": { padding: "6px 8px", fontSize: "13px" },
  ".cm-textfield": { backgroundColor: "var(--ground)", border: "1px solid var(--line-strong)", borderRadius: "4px", color: "inherit" },
  ".cm-button": { backgroundImage: "none", backgroundColor: "var(--ground)", border: "1px solid var(--line-strong)", borderRadius: "4px", color: "inherit" },
  ".cm-searchMatch": { backgroundColor: "var(--found)" },
});
