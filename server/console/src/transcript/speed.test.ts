import { describe, expect, it } from "vitest";
import { Fold } from "./fold";
import type { CallItem } from "./model";
import { folded, said, Script, wrote } from "./testing/script";

/** A long session: in each turn a message, two calls and two answers. */
function long(events: number, lines = 40): Script {
  const script = new Script().created();
  const result = `${"a line of output that is like any other\n".repeat(lines)}[exit code 0, after 3 s]`;
  const code = 'fn main() { println!("hello"); }\n'.repeat(30);
  while (script.events.length < events) {
    script.user("Please change this and that, and run the tests.").ran("Shell", { command: "cargo test" }, result);
    script.ran(
      "Edit",
      { path: `src/f${script.turn % 50}.rs`, old: code, new: `${code}//\n` },
      "edited src/f.rs at line 3",
    );
    script.answer("I think about it for a while.", "It is done. ".repeat(40)).done();
  }
  return script;
}

/** Milliseconds; printed, because a machine under load is no failure. */
function timed(what: string, run: () => void): void {
  const begin = performance.now();
  run();
  console.info(`${what}: ${(performance.now() - begin).toFixed(1)} ms`);
}

describe("a fold", () => {
  it("opens a session of 5,000 events", () => {
    const { events } = long(5000);
    const texts = events.map((event) => JSON.stringify(event));
    let fold = new Fold();
    timed("5,000 events folded, first time", () => (fold = folded(events.map((event) => ({ event })))));
    timed("5,000 events folded, warm", () => (fold = folded(events.map((event) => ({ event })))));
    timed("5,000 events parsed and folded", () => folded(texts.map((text) => ({ event: JSON.parse(text) as never }))));
    timed("its snapshot", () => fold.items());
    expect(fold.items().length).toBeGreaterThan(2000);
    expect(fold.unreadable).toBe(0);
  });

  it("of 50,000 events with long results stays within its bound", () => {
    const script = long(50_000, 100);
    let fold = new Fold();
    timed("50,000 events folded", () => (fold = folded(script.fed())));
    const calls = fold.items().filter((item): item is CallItem => item.kind === "call" && item.tool === "Shell");
    const units = (call: CallItem) =>
      (call.output?.lines() ?? [])
        .flatMap((line) => (line.kind === "text" ? line.spans : []))
        .reduce((all, span) => all + span.text.length, 0);
    // One in a hundred, because each is taken apart for that.
    const kept = calls.filter((_, at) => at % 100 === 0).reduce((all, call) => all + units(call), 0) * 100;
    console.info(`${fold.items().length} items, about ${(kept / 2 ** 20).toFixed(1)} Mi characters of output are kept`);
    expect(kept).toBeLessThan(24 << 20);
    // The oldest outputs are cut and say so; the newest are whole.
    expect(calls[0]?.output?.leftOut).toBeGreaterThan(2000);
    expect(calls.at(-1)?.output?.leftOut).toBe(0);
  }, 60_000);

  it("takes a second of 200 tokens and a program's output at the end of a long session", () => {
    const script = long(5000);
    const fold = folded(script.fed());
    const last = script
      .user("go")
      .answer("", "", [["Shell", { command: "make" }]])
      .placed(0);
    folded(
      last.events.slice(-4).map((event) => ({ event })),
      fold,
    );
    const turn = `trn_${script.turn}`;
    let [offset, written, worst] = [0, 0, 0];
    for (let frame = 0; frame < 60; frame++) {
      const begin = performance.now();
      for (let token = 0; token < 4; token++) {
        fold.live(said(0, script.step + 1, 1, 0, offset, " token", "text", turn));
        offset += 6;
      }
      const text = `${"compiling something with a long name\n".repeat(200)}`;
      fold.live({ ...wrote(written, text), turn, step: script.step } as never);
      written += text.length;
      fold.items();
      fold.facts();
      worst = Math.max(worst, performance.now() - begin);
    }
    console.info(`the slowest of 60 frames: ${worst.toFixed(1)} ms`);
    expect(fold.items().at(-1)?.kind).toBe("answer");
  });
});
