import { describe, expect, test } from "vitest";

import { placeOf, unitsOf } from "../src/editor/codePoints";
import { proposed, wrongPlace } from "../src/editor/fixes";
import { laidOut } from "../src/editor/format";
import { parametersOf, sentParameters, sentValue } from "../src/editor/parameters";
import { isInText, nameBefore, scopeOf } from "../src/editor/scope";
import { statementAt, statementsOf, toRun } from "../src/editor/split";
import { SPARK, wordsOf } from "../src/editor/words";
import { numbers } from "./random";

describe("statements", () => {
  test.each([
    ["select 1; select 2", ["select 1", "select 2"]],
    ["select ';'; select \"a;b\"", ["select ';'", 'select "a;b"']],
    ["select 1 -- a; b\n; select /* ; /* ; */ ; */ 2", ["select 1 -- a; b", "select /* ; /* ; */ ; */ 2"]],
    ["select $$a;b$$, $t$;$$;$t$; x", ["select $$a;b$$, $t$;$$;$t$", "x"]],
    ["select E'\\';'; select 'it''s;'", ["select E'\\';'", "select 'it''s;'"]],
    [";; -- nothing\n;", []],
    ["select 'open; select 2", ["select 'open; select 2"]],
    ["-- first\nselect 1;", ["-- first\nselect 1"]],
  ])("%j", (text, expected) => expect(statementsOf(text).map((one) => one.sql)).toEqual(expected));

  test("Spark reads backslashes and backticks its own way", () => {
    expect(statementsOf("select 'it\\';'; select `a;b`, \"c;d\"", SPARK).map((one) => one.sql)).toEqual([
      "select 'it\\';'",
      'select `a;b`, "c;d"',
    ]);
  });

  test("the words of any text leave out nothing but spaces", () => {
    const random = numbers(1);
    const parts = ["'", '"', "$", "$$", "--", "/*", "*/", "\n", ";", "a", "1.5e3", " ", "😀", "::", "?", "\\", "é", "`", "."];
    for (let turn = 0; turn < 2_000; turn += 1) {
      const text = Array.from({ length: 1 + Math.floor(random() * 14) }, () => parts[Math.floor(random() * parts.length)]).join("");
      for (const dialect of [undefined, SPARK]) {
        let at = 0;
        for (const word of wordsOf(text, dialect)) {
          expect(word.from).toBeGreaterThanOrEqual(at);
          expect(word.to).toBeGreaterThan(word.from);
          expect(text.slice(at, word.from).trim()).toBe("");
          at = word.to;
        }
        expect(text.slice(at).trim()).toBe("");
      }
    }
  });

  test("the cursor chooses: inside, just after the semicolon, before the next", () => {
    const text = "select 1;  \nselect 2;\n\nselect 3";
    expect(statementAt(text, 3)?.sql).toBe("select 1");
    expect(statementAt(text, 9)?.sql).toBe("select 1");
    expect(statementAt(text, 11)?.sql).toBe("select 1");
    expect(statementAt(text, 12)?.sql).toBe("select 2");
    expect(statementAt(text, 22)?.sql).toBe("select 3");
    expect(statementAt("  ", 1)).toBeNull();
  });

  test("a selection runs as it is, at its place", () => {
    expect(toRun("select 1 + 2; select 3", 7, 12)).toEqual([{ sql: "1 + 2", from: 7, to: 12 }]);
  });
});

describe("places", () => {
  test("code points become units", () => {
    expect(unitsOf("a😀é", 2)).toBe(3);
    expect(placeOf("select '😀', fair", 10, { offset: 12, length: 4 })).toEqual({ from: 23, to: 27 });
  });

  test("an error at the end of the text marks its last character", () => {
    expect(placeOf("select ", 5, { offset: 7, length: 1 })).toEqual({ from: 10, to: 11 });
    expect(placeOf("select", 0, { offset: 9, length: 1 })).toEqual({ from: 5, to: 6 });
  });
});

describe("fixes", () => {
  const problem = { type: "", title: "", status: 400, code: "", detail: "", retryable: false };
  test("names come from the hint and from the engine's candidates", () => {
    expect(proposed({ ...problem, hint: "Did you mean taxi.trips or taxi.zones? There are 30 tables." })).toEqual(["taxi.trips", "taxi.zones"]);
    expect(proposed({ ...problem, detail: 'no "fair"!\nCandidate bindings: "fare", "a ""b"""' })).toEqual(["fare", 'a "b"']);
    expect(proposed({ ...problem, hint: "Run one statement at a time." })).toEqual([]);
  });

  test("a wrong name without a place is replaced where it stands once", () => {
    const detail = "there is no table taxi.trip";
    expect(wrongPlace("select * from taxi.trip", null, { ...problem, detail })).toEqual({ from: 14, to: 23 });
    expect(wrongPlace("from taxi.trip a, taxi.trip b", null, { ...problem, detail })).toBeNull();
  });
});

describe("parameters", () => {
  test("each name once, not in texts, comments or casts", () => {
    expect(parametersOf("select $a, '$b', $c::int, $$ $d $$ -- $e\n, $a")).toEqual(["a", "c"]);
    expect(parametersOf("select ? + ?")).toEqual(["1", "2"]);
    expect(parametersOf("select :a, b::int, m[1:2], '10:30'", SPARK)).toEqual(["a"]);
  });

  test("values are sent as they read", () => {
    const auto = (text: string): unknown => sentValue({ text, type: "automatic" });
    expect(auto("10")).toBe(10);
    expect(auto("-1.5e3")).toBe(-1500);
    expect(auto("9007199254740993")).toEqual({ value: "9007199254740993", type: "bigint" });
    expect(auto("2024-03-01")).toBe("2024-03-01");
    expect(auto("0x1f")).toBe("0x1f");
    expect(sentValue({ text: "10", type: "string" })).toBe("10");
    expect(sentValue({ text: "12.50", type: "decimal" })).toEqual({ value: "12.50", type: "decimal(4,2)" });
    expect(sentValue({ text: "x", type: "null" })).toBeNull();
  });

  test("numbered ones are a list, named ones an object, also with names of objects", () => {
    expect(sentParameters(["2"], { "2": { text: "b", type: "string" } })).toEqual(["", "b"]);
    expect(sentParameters(["constructor"], {})).toEqual({ constructor: "" });
    expect(sentParameters([], {})).toBeUndefined();
  });
});

describe("scope", () => {
  test("tables with their aliases", () => {
    const { tables } = scopeOf('select * from taxi.trips t, c join "odd""x".y as z on t.a = z.b where x in (select 1 from d)');
    expect(tables).toEqual([
      { alias: "t", table: ["taxi", "trips"] },
      { alias: "c", table: ["c"] },
      { alias: "z", table: ['odd"x', "y"] },
      { alias: "d", table: ["d"] },
    ]);
  });

  test("common table expressions with their columns", () => {
    const { expressions } = scopeOf("with a as (select x, y.z, f(q, r) as g from t), b as materialized (select * from a) select  from b");
    expect(expressions.get("a")).toEqual({ columns: ["x", "z", "g"], from: [] });
    expect(expressions.get("b")).toEqual({ columns: [], from: [{ alias: "a", table: ["a"] }] });
  });

  test("the name before the cursor", () => {
    expect(nameBefore("select t.fa", 11)).toEqual({ parts: ["t"], from: 9 });
    expect(nameBefore('from "a b".', 11)).toEqual({ parts: ["a b"], from: 11 });
    expect(nameBefore("select ", 7)).toEqual({ parts: [], from: 7 });
  });

  test("nothing is completed in texts and comments", () => {
    expect(isInText("select 'ab'", 9)).toBe(true);
    expect(isInText("select 'ab' ", 12)).toBe(false);
    expect(isInText("-- ab", 5)).toBe(true);
  });
});

describe("format", () => {
  test("a line for each clause and column", () => {
    const text = "select a, count(*) n from taxi.trips t left join z on t.a=z.b and z.c>-1 where a between 1 and 2 and b in (1,2) group by a order by n desc limit 10";
    expect(laidOut(text)).toBe(`select
  a,
  count(*) n
from taxi.trips t
left join z on t.a = z.b
  and z.c > -1
where a between 1 and 2
  and b in (1, 2)
group by a
order by n desc
limit 10
`);
  });

  test("the words stay as they are, and formatting twice changes nothing", () => {
    const random = numbers(9);
    const parts = ("select from where a b.c ( ) , and or join left on group by order between 1 -1 'x y' \"q\" -- c\n /* d */ ; case when then end " +
      "with as :: [ ] $p * = <> count( union all distinct values set update not null is").split(" ");
    for (let turn = 0; turn < 3_000; turn += 1) {
      const text = Array.from({ length: 1 + Math.floor(random() * 25) }, () => parts[Math.floor(random() * parts.length)]).join(" ");
      const words = (sql: string): string[] => wordsOf(sql).map((word) => sql.slice(word.from, word.to).trim());
      const once = laidOut(text);
      expect(words(once)).toEqual(words(text));
      expect(laidOut(once)).toBe(once);
    }
  });
});
