/** Places in a text: the service counts code points, JavaScript counts UTF-16 units. Pure. */

/** The index in UTF-16 units of the code point that is `offset` after `from`. */
export function unitsOf(text: string, offset: number, from = 0): number {
  let at = from;
  for (let left = offset; left > 0 && at < text.length; left -= 1) {
    at += (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1;
  }
  return at;
}

/** Where a problem's place is in the tab's text: the statement that was sent began at `begin` there. */
export function placeOf(sent: string, begin: number, position: { offset: number; length: number }): { from: number; to: number } {
  const from = unitsOf(sent, position.offset);
  const to = unitsOf(sent, Math.max(position.length, 1), from);
  if (to > from) return { from: begin + from, to: begin + to };
  const last = sent.trimEnd().length; // the end of the text: the last character shows it
  return { from: begin + Math.max(last - 1, 0), to: begin + last };
}
