/** The difference of two texts by lines, for cards and for the changed files of a session. */

/** Cells of the table of common lines; texts that need more are shown as replaced. */
const MOST_CELLS = 1_000_000;

/** A line of a difference. Line numbers begin with 1; `null` where the line is not in that text. */
export interface DiffLine {
  readonly kind: "same" | "removed" | "added";
  readonly text: string;
  readonly old: number | null;
  readonly new: number | null;
}

/** The lines of both texts in one order: what is the same, what was removed and what was added. */
export function lineDiff(before: string, after: string, firstLine = 1): readonly DiffLine[] {
  const [old, now] = [linesOf(before), linesOf(after)];
  let start = 0;
  while (start < old.length && start < now.length && old[start] === now[start]) start++;
  let end = 0;
  while (end < old.length - start && end < now.length - start && old.at(-1 - end) === now.at(-1 - end)) end++;
  const middle = changed(old.slice(start, old.length - end), now.slice(start, now.length - end));
  const kinds = [...same(old.slice(0, start)), ...middle, ...same(old.slice(old.length - end))];
  let [oldLine, newLine] = [firstLine, firstLine];
  return kinds.map(({ kind, text }) => ({
    kind,
    text,
    old: kind === "added" ? null : oldLine++,
    new: kind === "removed" ? null : newLine++,
  }));
}

/** The numbers of lines that were added and removed. */
export function countsOf(lines: readonly DiffLine[]): { readonly added: number; readonly removed: number } {
  const count = (kind: DiffLine["kind"]) => lines.reduce((all, line) => all + (line.kind === kind ? 1 : 0), 0);
  return { added: count("added"), removed: count("removed") };
}

type Kind = Pick<DiffLine, "kind" | "text">;

/** The lines of a text; the end of its last line begins none. */
function linesOf(text: string): readonly string[] {
  if (text === "") return [];
  return (text.endsWith("\n") ? text.slice(0, -1) : text).split("\n");
}

function same(lines: readonly string[]): Kind[] {
  return lines.map((text) => ({ kind: "same", text }));
}

/** The difference by the longest common lines. */
function changed(old: readonly string[], now: readonly string[]): Kind[] {
  const removed = old.map((text): Kind => ({ kind: "removed", text }));
  const added = now.map((text): Kind => ({ kind: "added", text }));
  const width = now.length + 1;
  if (old.length === 0 || now.length === 0 || (old.length + 1) * width > MOST_CELLS) return [...removed, ...added];
  // The longest common part of the lines behind each place.
  const common = new Uint32Array((old.length + 1) * width);
  const at = (one: number, other: number) => common[one * width + other] ?? 0;
  for (let one = old.length - 1; one >= 0; one--) {
    for (let other = now.length - 1; other >= 0; other--) {
      common[one * width + other] =
        old[one] === now[other] ? at(one + 1, other + 1) + 1 : Math.max(at(one + 1, other), at(one, other + 1));
    }
  }
  const lines: Kind[] = [];
  let [one, other] = [0, 0];
  while (one < old.length && other < now.length) {
    if (old[one] === now[other]) {
      lines.push({ kind: "same", text: old[one] ?? "" });
      one++;
      other++;
    } else if (at(one + 1, other) >= at(one, other + 1)) {
      lines.push(removed[one++] as Kind);
    } else {
      lines.push(added[other++] as Kind);
    }
  }
  return [...lines, ...removed.slice(one), ...added.slice(other)];
}
