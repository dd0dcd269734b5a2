import { describe, expect, it } from "vitest";
import { countDiff, lineDiff } from "./line-diff";

/** The two texts that a comparison tells. */
function sides(before: string, after: string) {
  const lines = lineDiff(before, after, 10);
  const of = (kind: "removed" | "added") => lines.filter((line) => line.kind === "same" || line.kind === kind);
  return { lines, before: of("removed"), after: of("added") };
}

describe("the comparison of lines", () => {
  it("tells both texts whole, with the numbers of their lines", () => {
    const words = ["a", "b", "c"];
    let seed = 7;
    const random = (below: number) => {
      seed = (seed * 1103515245 + 12345) & 0x7fffffff;
      return seed % below;
    };
    for (let round = 0; round < 500; round++) {
      const text = () => Array.from({ length: random(12) }, () => words[random(3)]).join("\n");
      const [before, after] = [text(), text()];
      const told = sides(before, after);
      expect(told.before.map((line) => line.text).join("\n")).toBe(before);
      expect(told.after.map((line) => line.text).join("\n")).toBe(after);
      expect(told.before.map((line) => line.before)).toEqual(told.before.map((_, index) => 10 + index));
      expect(told.after.map((line) => line.after)).toEqual(told.after.map((_, index) => 10 + index));
    }
  });

  it("has no numbers where the place in the file is not known", () => {
    const lines = lineDiff("a\nb", "a\nc", null);
    expect(lines.map((line) => line.kind)).toEqual(["same", "removed", "added"]);
    expect(lines.every((line) => line.before === null && line.after === null)).toBe(true);
  });

  it("finds the shortest change", () => {
    expect(countDiff(lineDiff("a\nb\nc\nd\n", "a\nx\nc\nd\ne\n", 1))).toEqual({ added: 2, removed: 1 });
  });

  it("shows texts that differ in too much as replaced", () => {
    const many = (letter: string) => Array.from({ length: 3000 }, (_, index) => `${letter}${index}`).join("\n");
    expect(countDiff(lineDiff(many("a"), many("b"), 1))).toEqual({ added: 3000, removed: 3000 });
  });
});
