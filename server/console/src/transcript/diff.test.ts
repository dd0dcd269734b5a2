import { describe, expect, it } from "vitest";
import { countsOf, lineDiff } from "./diff";
import { random } from "./testing/random";

const short = (before: string, after: string) =>
  lineDiff(before, after).map(({ kind, text }) => `${{ same: " ", removed: "-", added: "+" }[kind]}${text}`);

describe("a difference", () => {
  it("keeps common lines and says what was removed and added", () => {
    expect(short("a\nb\nc\nd\n", "a\nx\nc\nd\ne\n")).toEqual([" a", "-b", "+x", " c", " d", "+e"]);
    expect(short("", "a\n")).toEqual(["+a"]);
    expect(short("a", "")).toEqual(["-a"]);
    expect(short("same\n", "same\n")).toEqual([" same"]);
  });

  it("numbers the lines of both texts from where they begin", () => {
    const lines = lineDiff("a\nb", "b\nc", 10);
    expect(lines.map((line) => [line.old, line.new])).toEqual([
      [10, null],
      [11, 10],
      [null, 11],
    ]);
    expect(countsOf(lines)).toEqual({ added: 1, removed: 1 });
  });

  it("of any texts leads from one to the other", () => {
    for (let seed = 1; seed <= 300; seed++) {
      const next = random(seed);
      const text = () => Array.from({ length: next(30) }, () => `line ${next(8)}\n`).join("");
      const [before, after] = [text(), text()];
      const lines = lineDiff(before, after);
      const only = (not: string) =>
        lines
          .filter((line) => line.kind !== not)
          .map((line) => `${line.text}\n`)
          .join("");
      expect([only("added"), only("removed")]).toEqual([before, after]);
    }
  });

  it("of two huge texts is bounded", () => {
    const text = (word: string) => `${word} of many\n`.repeat(20_000);
    expect(countsOf(lineDiff(text("one"), text("other")))).toEqual({ added: 20_000, removed: 20_000 });
  });
});
