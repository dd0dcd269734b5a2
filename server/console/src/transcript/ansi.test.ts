import { describe, expect, it } from "vitest";
import { MOST_LINES, MOST_UNITS, type OutputLine, Terminal, terminalLines } from "./ansi";
import { MOST_COLUMNS, MOST_ROW_UNITS } from "./row";
import { random } from "./testing/random";

/** The lines; styled pieces show their classes in tags. */
function shown(lines: readonly OutputLine[]): string[] {
  const span = ({ classes, text }: { classes: string; text: string }) =>
    classes ? `<${classes.replaceAll("ansi-", "")}>${text}</>` : text;
  return lines.map((line) => (line.kind === "gap" ? `(${line.bytes} bytes)` : line.spans.map(span).join("")));
}

const of = (text: string) => shown(terminalLines(text));

describe("a terminal", () => {
  it("keeps colours and weights", () => {
    expect(of("a\x1b[1;31mb\x1b[22mc\x1b[md \x1b[92;3;4me\x1b[24;39mf\n\x1b[2mg")).toEqual([
      "a<red bold>b</><red>c</>d <bright-green italic underline>e</><italic>f</>",
      "<dim italic>g</>",
    ]);
    expect(of("\x1b[30;42m PASS \x1b[0m ok \x1b[7mx\x1b[27my")).toEqual([
      "<black on-green> PASS </> ok <inverse>x</>y",
    ]);
  });

  it("takes the nearest of 16 for finer colours", () => {
    expect(of("\x1b[38;5;208ma\x1b[38;2;0;250;3mb\x1b[38:2::1:1:1mc\x1b[38:5:12md")).toEqual([
      "<yellow>a</><bright-green>b</><black>c</><bright-blue>d</>",
    ]);
    expect(of("\x1b[48;5;1;31ma\x1b[0;48;2;4;4;4mb\x1b[38;5mc")).toEqual(["<red on-red>a</><on-black>bc</>"]);
  });

  it("drops other sequences and control characters", () => {
    const text =
      "a\x1b]0;title\x07b\x1b]8;;http://x\x1b\\c\x1b[2J\x1b[Hd\x1b(Be\x07\0\x7ff\x1bPq#0~\x1b\\g\u009b?5lh\x1b[?25li\x1b[>1mj";
    expect(of(text)).toEqual(["abcdefghij"]);
    expect(of("a\u202eb\x1b")).toEqual(["a\ufffdb"]);
    expect(of("\x1b]0;open\nnext")).toEqual(["", "next"]);
    expect(of("<img src=x onerror=alert(1)>")).toEqual(["<img src=x onerror=alert(1)>"]);
  });

  it("shows progress as it was drawn last", () => {
    expect(of("10 %\r50 %\r\r100 %\r\ndone")).toEqual(["100 %", "done"]);
    expect(of("working\r\x1b[Kdone\nworking\x1b[2K\rok")).toEqual(["done", "ok"]);
    expect(of("kept\x1b[K\r")).toEqual(["kept"]);
    expect(of("-\b\\\b|\x1b[1mn")).toEqual(["|<bold>n</>"]);
    expect(of("abc\rX")).toEqual(["Xbc"]);
    // Two bars that are drawn again by moving up.
    expect(of("a 1\nb 1\n\x1b[2Aa 2\n\x1b[Kb 2\n\x1b[2A\x1b[Ja 3\nb 3\n")).toEqual(["a 3", "b 3"]);
  });

  it("knows wide letters, marks and tabs", () => {
    expect(of("a\tb\t日\tc")).toEqual(["a       b       日      c"]);
    expect(of("日本\rab")).toEqual(["ab本"]);
    expect(of("e\u0301x\r_")).toEqual(["_x"]);
    expect(of("👩‍👩‍👧 ok\n")).toEqual(["👩‍👩‍👧 ok"]);
  });

  it("ends a line and a sequence at a gap", () => {
    const terminal = new Terminal();
    terminal.push("abc\x1b]0;tit");
    terminal.gap(5);
    terminal.gap(7);
    terminal.push("def\n");
    expect(shown(terminal.lines())).toEqual(["abc", "(12 bytes)", "def"]);
    expect(terminal.missing).toBe(12);
  });

  it("keeps a line that did not change the same object", () => {
    const terminal = new Terminal();
    terminal.push("one\ntwo");
    const before = terminal.lines();
    terminal.push("!");
    const after = terminal.lines();
    expect(after[0]).toBe(before[0]);
    expect(after[1]).not.toBe(before[1]);
    expect(shown(before)).toEqual(["one", "two"]);
  });

  it("bounds lines without end, marks without letters, and many lines", () => {
    const long = new Terminal();
    for (let part = 0; part < 20; part++) long.push("x".repeat(1 << 18));
    expect(shown(long.lines())[0]).toHaveLength(MOST_COLUMNS + 1);
    const marks = new Terminal();
    marks.push("\u0301".repeat(300_000));
    marks.push("\r" + "\u0301".repeat(300_000));
    expect(shown(marks.lines()).join("").length).toBeLessThanOrEqual(MOST_ROW_UNITS + 2);
    const many = new Terminal();
    many.push("x".repeat(1000) + "\n".repeat(100_000));
    for (let part = 0; part < 1000; part++) many.push("\x1b[512C" + "y".repeat(100) + "\n");
    const lines = shown(many.lines());
    expect(lines.length).toBeLessThanOrEqual(MOST_LINES);
    expect(lines.join("").length).toBeLessThanOrEqual(MOST_UNITS);
    expect(many.leftOut).toBeGreaterThan(100_000);
  });
});

const LETTERS = [
  "a",
  "日",
  "👩",
  "\u0301",
  "\r",
  "\n",
  "\r\n",
  "\t",
  "\b",
  "\x1b",
  "[",
  "]",
  "1",
  ";",
  "31m",
  "\x1b[0m",
  "K",
  "\x07",
  "\\",
  "\x1b[38;5;208m",
  "\x1b[2A",
  "\x1b[K",
  "\x1b[J",
  "\x1b[9C",
  "\x1b[2D",
  "\x1b[5G",
  "\x1b[1K",
  "\x1b[B",
  "\u009b",
  "\u202e",
  "\0",
  "\x7f",
];

describe("hostile output", () => {
  it("makes no difference by where it is cut, and leaves no control character", () => {
    for (let seed = 1; seed <= 3000; seed++) {
      const next = random(seed);
      const pieces = Array.from({ length: next(40) }, () => LETTERS[next(LETTERS.length)] ?? "");
      const apart = new Terminal();
      for (const piece of pieces) apart.push(piece);
      const whole = of(pieces.join(""));
      expect(shown(apart.lines()), JSON.stringify(pieces)).toEqual(whole);
      for (const line of whole)
        expect(/[\0-\x1f\x7f-\x9f\u202a-\u202e]/.test(line), JSON.stringify(pieces)).toBe(false);
    }
  });

  it("of any characters at all is bounded and harmless, also when it is painted in between", () => {
    for (let seed = 1; seed <= 300; seed++) {
      const next = random(seed);
      const terminal = new Terminal();
      for (let piece = 0; piece < 20; piece++) {
        const length = next(200);
        terminal.push(
          Array.from({ length }, () => String.fromCodePoint(next(4) ? next(0x100) : next(0x10000))).join(""),
        );
        if (next(3) === 0) terminal.lines();
        if (next(9) === 0) terminal.gap(next(5));
      }
      const lines = shown(terminal.lines());
      expect(lines.length).toBeLessThanOrEqual(MOST_LINES + 1);
      for (const line of lines) expect(/[\0-\x1f\x7f-\x9f\u202a-\u202e]/.test(line)).toBe(false);
    }
  });
});
