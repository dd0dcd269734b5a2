import { describe, expect, it } from "vitest";
import { line, text, whole } from "./safe";
import { behind, behindDamaged, byteLength } from "./utf8";

describe("text of strangers", () => {
  it("loses sequences, titles and what is invisible, and shows other control characters", () => {
    expect(text("\x1b[31mred\x1b[0m a\x1b]0;title\x07b\x1b]8;;http://x\x1b\\c\u009b31md\x1b(Be")).toBe("red abcde");
    expect(text("a\bb\x07c\0d\x7f\r\ne\rf")).toBe("a␈b␇c␀d␡\ne\nf");
    expect(text("abc\u202edef\u200bg\u{e0041}")).toBe("abc\ufffddefg");
    expect(text("👩‍👩‍👧 한국어 हिन्दी\t\n")).toBe("👩‍👩‍👧 한국어 हिन्दी\t\n");
    expect(text(`\x1b]0;${"x".repeat(100_000)}`)).toHaveLength(100_002 - 256);
  });

  it("is one line of bounded length", () => {
    expect(line("a\nb\tc")).toBe("a⏎b c");
    expect(line("x".repeat(1000))).toBe(`${"x".repeat(400)}…`);
    expect(line("👩".repeat(1000), 5)).toBe("👩👩…");
  });

  it("that a person judges shows each letter", () => {
    expect(whole("rm\u200d x\u202e\x1b[2J\u{e0041}")).toBe("rm<U+200D> x<U+202E>␛[2J<U+E0041>");
  });
});

describe("offsets in bytes", () => {
  it("count as UTF-8 does", () => {
    for (const sample of ["", "abc", "grüße", "日本語", "👩‍👩‍👧", "a\u0080\u07ff\u0800\uffff"]) {
      expect(byteLength(sample)).toBe(new TextEncoder().encode(sample).length);
    }
    expect([behind("grüße", 4), behind("grüße", 3), behind("日x", 3), behind("a", 5)]).toEqual(["ße", null, "x", ""]);
  });

  it("share out the bytes of damaged characters", () => {
    const damaged = "\ufffda\ufffdb"; // ff 61 ff 62
    expect([1, 2, 3].map((known) => behindDamaged(damaged, 4, known))).toEqual(["a\ufffdb", "\ufffdb", "b"]);
    expect(behindDamaged("hällo", 6, 3)).toBe("llo");
  });
});
