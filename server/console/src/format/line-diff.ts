/** The comparison of two texts, line by line (E. Myers, “An O(ND) Difference Algorithm and Its Variations”, 1986). */

/** A line of a comparison. Numbers count from 1, in the file before and in the file after; `null` where there is no such line or its place is not known. */
export interface DiffLine {
  readonly kind: "same" | "added" | "removed";
  readonly text: string;
  readonly before: number | null;
  readonly after: number | null;
}

/** The lines of each side that are looked at; more are left out. */
const MOST_LINES = 20_000;

/** The most differences that are looked for; texts that differ more are shown as replaced. */
const MOST_STEPS = 600;

/** Compares two texts. `first` is the number of their first line in the file; `null` if it is not known. */
export function lineDiff(before: string, after: string, first: number | null): DiffLine[] {
  const [old, now] = [linesOf(before), linesOf(after)];
  let head = 0;
  while (head < old.length && head < now.length && old[head] === now[head]) head++;
  let tail = 0;
  while (tail < old.length - head && tail < now.length - head && old[old.length - 1 - tail] === now[now.length - 1 - tail]) tail++;
  const lines: DiffLine[] = [];
  const number = (at: number) => (first === null ? null : first + at);
  const same = (from: number, to: number, shift: number) => {
    for (let at = from; at < to; at++) lines.push({ kind: "same", text: old[at] ?? "", before: number(at), after: number(at + shift) });
  };
  same(0, head, 0);
  let [oldAt, newAt] = [head, head];
  for (const step of script(old.slice(head, old.length - tail), now.slice(head, now.length - tail))) {
    if (step === "same") same(oldAt, oldAt + 1, newAt - oldAt);
    else if (step === "removed") lines.push({ kind: step, text: old[oldAt] ?? "", before: number(oldAt), after: null });
    else lines.push({ kind: step, text: now[newAt] ?? "", before: null, after: number(newAt) });
    if (step !== "added") oldAt++;
    if (step !== "removed") newAt++;
  }
  same(old.length - tail, old.length, now.length - old.length);
  return lines;
}

/** The numbers of lines that were added and removed. */
export function countDiff(lines: readonly DiffLine[]): { added: number; removed: number } {
  let [added, removed] = [0, 0];
  for (const line of lines) {
    if (line.kind === "added") added++;
    else if (line.kind === "removed") removed++;
  }
  return { added, removed };
}

/** The lines of a text; the line end at its end begins no further line. */
function linesOf(text: string): string[] {
  if (text === "") return [];
  const lines = text.split("\n", MOST_LINES + 1);
  if (lines.length > MOST_LINES) lines.length = MOST_LINES;
  else if (lines.at(-1) === "") lines.pop();
  return lines;
}

type Step = DiffLine["kind"];

/** The shortest way from one list of lines to the other. */
function script(old: readonly string[], now: readonly string[]): Step[] {
  const replaced = (): Step[] => [...old.map((): Step => "removed"), ...now.map((): Step => "added")];
  if (old.length === 0 || now.length === 0) return replaced();
  const most = Math.min(old.length + now.length, MOST_STEPS);
  const size = 2 * most + 1;
  const furthest = new Int32Array(size + 2);
  const trace: Int32Array[] = [];
  for (let steps = 0; steps <= most; steps++) {
    trace.push(furthest.slice());
    for (let diagonal = -steps; diagonal <= steps; diagonal += 2) {
      const down = isDown(furthest, most, diagonal, steps);
      let at = down ? (furthest[most + diagonal + 1] ?? 0) : (furthest[most + diagonal - 1] ?? 0) + 1;
      while (at < old.length && at - diagonal < now.length && old[at] === now[at - diagonal]) at++;
      furthest[most + diagonal] = at;
      if (at >= old.length && at - diagonal >= now.length) return wayBack(trace, most, steps, old.length, now.length);
    }
  }
  return replaced();
}

function isDown(furthest: Int32Array, most: number, diagonal: number, steps: number): boolean {
  return diagonal === -steps || (diagonal !== steps && (furthest[most + diagonal - 1] ?? 0) < (furthest[most + diagonal + 1] ?? 0));
}

function wayBack(trace: readonly Int32Array[], most: number, steps: number, oldAt: number, newAt: number): Step[] {
  const way: Step[] = [];
  for (let step = steps; step > 0; step--) {
    const furthest = trace[step] ?? new Int32Array();
    const diagonal = oldAt - newAt;
    const down = isDown(furthest, most, diagonal, step);
    const before = diagonal + (down ? 1 : -1);
    const from = furthest[most + before] ?? 0;
    while (oldAt > (down ? from : from + 1)) {
      way.push("same");
      oldAt--;
      newAt--;
    }
    way.push(down ? "added" : "removed");
    if (down) newAt--;
    else oldAt--;
  }
  while (oldAt > 0) {
    way.push("same");
    oldAt--;
  }
  return way.reverse();
}
