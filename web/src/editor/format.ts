/** Lays out a text of SQL: a line for each clause and each column. Words stay as they are, and so do comments. Pure. */

import { DUCKDB, type Dialect, isWord, type Word, wordsOf } from "./words";

const CLAUSES = new Set(
  ("select from where having qualify window limit offset values set returning union intersect except with insert update delete " +
    "merge create alter drop order group").split(" "),
);
const JOINS = new Set("join inner left right full cross natural asof positional semi anti".split(" "));
const LISTS = new Set(["select", "group", "order", "set", "with"]);
const NO_SPACE_BEFORE = new Set([",", ".", ")", "]", ";", "::", ":"]);
const NO_SPACE_AFTER = new Set([".", "(", "[", "::"]);
const CALLED = new Set(
  "select from where and or not in on as by values over filter using when then else case exists any all union intersect except between limit having qualify with is like ilike join".split(" "),
);

interface Level {
  /** How far the lines of this level are indented. */
  indent: number;
  /** The clause that is being written. */
  clause: string;
  /** A parenthesis that is broken into lines. */
  isBlock: boolean;
}

export function formatSql(sql: string, dialect: Dialect = DUCKDB): string {
  const words = (text: string): string => wordsOf(text, dialect).map(({ from, to }) => text.slice(from, to).trim()).join("\0");
  const next = laidOut(sql, dialect);
  return words(next) === words(sql) ? next : sql; // rather no layout than another statement
}

export function laidOut(sql: string, dialect: Dialect = DUCKDB): string {
  return new Layout(sql, wordsOf(sql, dialect)).lines().trim() + (sql.trim() === "" ? "" : "\n");
}

class Layout {
  private out = "";
  private levels: Level[] = [{ indent: 0, clause: "", isBlock: true }];
  private between = false;

  constructor(
    private readonly sql: string,
    private readonly words: Word[],
  ) {}

  lines(): string {
    this.words.forEach((word, at) => this.write(word, at));
    return this.out.replace(/[ \t]+$/gm, "");
  }

  private get level(): Level {
    return this.levels.at(-1)!;
  }

  private write(word: Word, at: number): void {
    const text = this.sql.slice(word.from, word.to);
    const lower = word.kind === "name" || word.kind === "mark" ? text.toLowerCase() : "";
    const { level } = this;
    if (word.kind === "comment") return this.comment(text, at);
    if (lower === ";") return this.endStatement();
    if (this.isClause(lower, at)) {
      level.clause = lower;
      if (lower !== "by") this.newLine(level.indent);
    } else if (level.isBlock && JOINS.has(lower) && !this.isBefore(at, JOINS) && this.isJoin(at)) {
      this.newLine(level.indent);
      level.clause = "join";
    } else if (level.isBlock && (lower === "and" || lower === "or") && !this.between && isCondition(level.clause)) {
      this.newLine(level.indent + 2);
    }
    if (lower === "between") this.between = true;
    if (lower === "and") this.between = false;
    if (lower === ")" || lower === "]") return this.close(text);
    this.space(word, at, lower);
    this.out += text;
    if (lower === "(" || lower === "[") this.open(at);
    if (lower === "," && level.isBlock && (LISTS.has(level.clause) || level.clause === "by")) this.newLine(level.indent + 2);
    if (lower === "select" && level.isBlock && this.hasList(at)) {
      if (isWord(this.sql, this.words[at + 1], "distinct")) return;
      this.newLine(level.indent + 2);
    }
  }

  /** A word that begins a clause; the second word of one, as in GROUP BY, does not. */
  private isClause(lower: string, at: number): boolean {
    if (!this.level.isBlock || !CLAUSES.has(lower) || isWord(this.sql, this.words[at - 1], ".")) return false;
    if (lower === "with") return at === 0 || isWord(this.sql, this.words[at - 1], ";") || this.isFirst(at);
    if (lower === "set" || lower === "values" || lower === "window") return !isWord(this.sql, this.words[at + 1], ",");
    if (lower === "order" || lower === "group") return isWord(this.sql, this.words[at + 1], "by");
    if (lower === "from" && isWord(this.sql, this.words[at - 1], "distinct")) return false; // IS DISTINCT FROM
    return !(lower === "update" && isWord(this.sql, this.words[at - 1], "then"));
  }

  private isFirst(at: number): boolean {
    return isWord(this.sql, this.words[at - 1], "(");
  }

  private isBefore(at: number, words: Set<string>): boolean {
    const before = this.words[at - 1];
    return before !== undefined && (words.has(this.textOf(before)) || this.textOf(before) === "outer");
  }

  /** LEFT and others are functions too. */
  private isJoin(at: number): boolean {
    for (let next = at; next < at + 5 && next < this.words.length; next += 1) {
      const text = this.textOf(this.words[next]!);
      if (text === "join") return true;
      if (!JOINS.has(text) && text !== "outer") return false;
    }
    return false;
  }

  private hasList(at: number): boolean {
    let depth = 0;
    for (const word of this.words.slice(at + 1)) {
      const text = this.textOf(word);
      if (text === "(" || text === "[") depth += 1;
      if (text === ")" || text === "]") depth -= 1;
      if (depth < 0 || text === ";" || (depth === 0 && CLAUSES.has(text))) return false;
      if (depth === 0 && text === ",") return true;
    }
    return false;
  }

  private textOf(word: Word): string {
    return word.kind === "name" || word.kind === "mark" ? this.sql.slice(word.from, word.to).toLowerCase() : "";
  }

  private open(at: number): void {
    const next = this.words.slice(at + 1).find((word) => word.kind !== "comment");
    const isQuery = next !== undefined && ["select", "with", "from", "values"].includes(this.textOf(next));
    const indent = this.level.indent + (this.level.clause === "select" || this.level.clause === "with" ? 4 : 2);
    this.levels.push({ indent, clause: "", isBlock: isQuery });
  }

  private close(text: string): void {
    const ended = this.levels.length > 1 ? this.levels.pop()! : this.level;
    if (ended.isBlock && ended !== this.level) this.newLine(ended.indent - 2);
    this.out += text;
  }

  private endStatement(): void {
    this.levels = [{ indent: 0, clause: "", isBlock: true }];
    this.out = `${this.out.replace(/[ \t]+$/, "")};\n\n`;
  }

  private comment(text: string, at: number): void {
    const before = this.words[at - 1];
    const isOwnLine = before === undefined || this.sql.slice(before.to, this.words[at]!.from).includes("\n");
    if (isOwnLine && this.out !== "" && !this.out.endsWith("\n")) this.newLine(this.level.indent);
    else if (!isOwnLine) {
      this.out = this.out.replace(/\s+$/, "");
      this.out += " ";
    }
    this.out += text;
    this.newLine(this.level.clause === "" ? this.level.indent : this.level.indent + 2);
  }

  private newLine(indent: number): void {
    this.out = this.out.replace(/[ \t]+$/, "");
    if (this.out !== "" && !this.out.endsWith("\n")) this.out += "\n";
    this.out += " ".repeat(indent);
  }

  /** A space before the word, unless it belongs to the word before it. */
  private space(word: Word, at: number, lower: string): void {
    const before = this.words[at - 1];
    if (before === undefined || /[\s(]$/.test(this.out) || this.out === "") return;
    const last = this.textOf(before) || (before.kind === "mark" ? this.sql.slice(before.from, before.to) : "");
    const isTight = before.to === word.from;
    if (NO_SPACE_BEFORE.has(lower) || NO_SPACE_AFTER.has(last)) return;
    if ((lower === "(" || lower === "[") && isTight && !CALLED.has(last) && last !== ",") return;
    const isOperator = (text: string): boolean => /^[-+*/%<>=!|&^~@#]+$/.test(text);
    if (isTight && (isOperator(last) && !isOperator(lower) ? this.isSign(at - 1) : word.kind === "text" || lower === ":" || last === ":")) return;
    this.out += " ";
  }

  /** A sign belongs to the number after it. */
  private isSign(at: number): boolean {
    const before = this.words[at - 1];
    if (before === undefined) return true;
    const text = this.textOf(before);
    return (before.kind === "mark" && text !== ")" && text !== "]") || CALLED.has(text);
  }
}

const isCondition = (clause: string): boolean => ["where", "having", "qualify", "join", "on"].includes(clause);
