import { describe, expect, it } from "vitest";
import { BlockReader } from "./blocks";

const TEXT = `# Head

A paragraph with *marks* and a [link](https://example.org).

- one
- two

  more of two

1. first

\`\`\`rust
fn main() {}

// after an empty line
\`\`\`

| a | b |
|---|---|
| 1 | 2 |

Last
===

    indented

    again
> quoted
lazily

end`;

const told = (reader: BlockReader, text: string, open: boolean) => reader.read(text, open).map(({ at, token }) => [at, token.type, token.raw.trimEnd()]);

describe("the blocks of a growing text", () => {
  it("are in the end those of the whole text, wherever it was cut", () => {
    const whole = told(new BlockReader(), TEXT, false);
    for (const size of [1, 2, 3, 7, 31]) {
      const reader = new BlockReader();
      for (let end = 0; end < TEXT.length; end += size) reader.read(TEXT.slice(0, end), true);
      expect(told(reader, TEXT, false)).toEqual(whole);
    }
  });

  it("keep their identity once another one follows", () => {
    const reader = new BlockReader();
    const before = reader.read("one\n\ntwo\n\nthree", true);
    const after = reader.read("one\n\ntwo\n\nthree and more\n\nfour", true);
    expect(after.slice(0, 2).every((block, index) => block === before[index])).toBe(true);
    expect(after[2]).not.toBe(before[2]);
  });

  it("begin again where the text is another one", () => {
    const reader = new BlockReader();
    reader.read("one\n\ntwo\n\nthree", true);
    expect(told(reader, "other", false)).toEqual(told(new BlockReader(), "other", false));
  });

  it("survive text that is nested or marked beyond reason", () => {
    const hostile = [">".repeat(20_000), "[".repeat(100_000), "*a ".repeat(50_000), "- ".repeat(20_000), `|a|\n|-|\n${"|x".repeat(20_000)}`, "<a ".repeat(50_000), "`a".repeat(50_000)];
    for (const text of hostile) {
      const blocks = new BlockReader().read(text, true);
      expect(blocks.map((block) => block.token.raw).join("").length).toBeGreaterThan(0);
    }
  });
});
