import { describe, expect, it } from "vitest";
import type { Fold } from "./fold";
import type { CallItem } from "./model";
import { folded, Script, turn, wrote } from "./testing/script";

const calls = (fold: Fold) => fold.items().filter((item): item is CallItem => item.kind === "call");
const lines = (fold: Fold) =>
  calls(fold)[0]
    ?.output?.lines()
    .map((line) => (line.kind === "text" ? line.spans.map((span) => span.text).join("") : `<${line.bytes}>`));

describe("a call", () => {
  const shell = ["Shell", { command: "make" }] as const;

  it("goes from asked to its end, with its place, its output and its exit code", () => {
    const script = new Script().user("go").answer("", "", [shell]);
    const fold = folded(script.fed());
    expect(calls(fold)[0]).toMatchObject({ state: "asked", request: { kind: "shell", command: "make" } });
    folded([{ event: script.placed(0).events.at(-1)! }], fold);
    expect(calls(fold)[0]).toMatchObject({
      state: "running",
      operation: "op_1",
      place: { runnerName: "laptop", isolation: "none" },
    });
    fold.live(wrote(0, "\x1b[31mone\n"));
    fold.live(wrote(9, "two\n"));
    expect(lines(fold)).toEqual(["one", "two"]);
    script.ended(0, "completed", "one\ntwo\n[exit code 2, after 3 s]", { overran: true });
    folded([{ event: script.events.at(-1)! }], fold);
    expect(calls(fold)[0]).toMatchObject({
      state: "ended",
      open: false,
      end: { exit: 2, failed: true, overran: true, reason: "" },
    });
    expect(lines(fold)).toEqual(["one", "two"]);
  });

  it("asks for the command that a person put in place of the proposed one", () => {
    const script = new Script().user("go").answer("", "", [shell]);
    script.asked(0, { kind: "call", tool: "Shell", text: "make", risk: "low", why: "ask mode", editable: true });
    const [call] = calls(folded(script.answered(0, { outcome: "allowed", command: "make -n" }).fed()));
    expect(call).toMatchObject({ request: { command: "make -n" }, approval: { question: { text: "make" } } });
  });

  it("has its output from the log where its end was not heard", () => {
    const script = new Script().user("go").answer("", "", [shell]).placed(0);
    const fold = folded(script.fed());
    fold.live(wrote(0, "one\n"));
    folded([{ event: script.ended(0, "completed", "one\ntwo\nthree\n[exit code 0]").events.at(-1)! }], fold);
    expect(lines(fold)).toEqual(["one", "two", "three"]);
    expect(calls(fold)[0]?.end).toMatchObject({ exit: 0, failed: false });
  });

  it("of which the model was given a part has its end all the same", () => {
    const advice = '[an excerpt of r1; recall {"of":"r1"} shows more, from an offset or by a pattern]';
    const script = new Script()
      .user("go")
      .answer("", "", [shell, shell, ["Read", { path: "a" }]])
      .placed(0);
    const fold = folded(script.fed());
    fold.live(wrote(0, "one\ntwo\nthree\n"));
    script.ended(0, "completed", `one\n[… 4 bytes left out …]\nthree\n[exit code 3, after 11 s]\n${advice}`);
    script.ended(
      1,
      "completed",
      "[stdout]\na\n[stderr]\nb\n[ended by signal 9; processes that it started may still run]",
    );
    script.ended(2, "completed", `text\n${advice}`);
    folded(script.fed().slice(-3), fold);
    expect(lines(fold)).toEqual(["one", "two", "three"]);
    expect(calls(fold).map(({ end }) => [end?.exit, end?.excerpt])).toEqual([
      [3, true],
      [null, false],
      [null, true],
    ]);
    expect(calls(fold)[1]?.end).toMatchObject({
      failed: true,
      reason: "ended by signal 9; processes that it started may still run",
    });
    expect(calls(fold)[2]?.result).toBe("text");
  });

  it("shows what is missing of its output, and what came before a late reader", () => {
    const fold = folded(new Script().user("go").answer("", "", [shell]).placed(0).fed());
    fold.live(wrote(1000, "late\n"));
    fold.live(wrote(1000, "late\n"));
    fold.live(wrote(1105, "more\n"));
    fold.live({
      kind: "gap",
      turn: turn(1),
      step: 1,
      ordinal: 0,
      operation: "op_1",
      stream: "stdout",
      from: 1110,
      to: 1200,
    });
    expect(lines(fold)).toEqual(["late", "<100>", "more", "<90>"]);
    expect(calls(fold)[0]?.output).toMatchObject({ leftOut: 1000, missing: 190 });
  });

  it("keeps the last 200 lines of a long output", () => {
    const fold = folded(new Script().user("go").answer("", "", [shell]).placed(0).fed());
    let offset = 0;
    for (let line = 0; line < 5000; line++) {
      const text = `line ${line}\n`;
      fold.live(wrote(offset, text));
      offset += text.length;
    }
    const kept = lines(fold) ?? [];
    expect([kept.length, kept.at(-1)]).toEqual([200, "line 4999"]);
    const bytes = kept.reduce((all, line) => all + line.length + 1, 0);
    expect(calls(fold)[0]?.output?.leftOut).toBe(offset - bytes);
    const script = new Script()
      .user("go")
      .answer("", "", [shell])
      .placed(0)
      .ended(0, "completed", "line 4999\n[exit code 0]");
    folded(script.fed().slice(-1), fold);
    expect(lines(fold)).toEqual(kept);
    expect(calls(fold)[0]?.output?.leftOut).toBe(offset - bytes);
  });

  it("that people are asked about says so, and who answered elsewhere", () => {
    const question = { kind: "call", tool: "Shell", text: "rm -rf x\u200b\x1b[2J", risk: "high", why: "mode" } as never;
    const script = new Script().user("go").answer("", "", [shell]).asked(0, question);
    const fold = folded(script.fed());
    expect(calls(fold)[0]).toMatchObject({
      state: "approval",
      approval: { question: { text: "rm -rf x<U+200B>␛[2J" }, answered: null },
    });
    expect(fold.facts().approvals.length).toBe(1);
    expect(fold.facts().working?.activity).toMatchObject({ what: "person", call: calls(fold)[0]?.id });
    folded([{ event: script.answered(0, { outcome: "denied", words: "no" }).events.at(-1)! }], fold);
    expect(calls(fold)[0]).toMatchObject({
      state: "asked",
      approval: { answered: { name: "kim", answer: { words: "no" } } },
    });
    expect([fold.facts().approvals.length, fold.facts().people["usr_2"]]).toEqual([0, "kim"]);
  });

  it("of a turn that ends first is left, and its question with it", () => {
    const script = new Script()
      .user("go")
      .answer("", "", [shell])
      .asked(0, { kind: "plan", text: "x" })
      .done("cancelled");
    const fold = folded(script.fed());
    expect(calls(fold)[0]).toMatchObject({ state: "left", open: false });
    expect([fold.facts().approvals.length, fold.facts().working]).toEqual([0, null]);
  });

  it("in the background is a task with its last line until it has settled", () => {
    const script = new Script()
      .user("go")
      .answer("", "", [["Shell", { command: "make serve" }]])
      .placed(0);
    script.ended(0, "background", "[goes on in the background as task 1]", { task: 1 }).done();
    const fold = folded(script.fed());
    fold.live(wrote(0, "listening on 80\n\n"));
    fold.items();
    expect(fold.facts().tasks).toMatchObject([
      { number: 1, about: "make serve", lastLine: "listening on 80", ended: null },
    ]);
    expect(calls(fold)[0]).toMatchObject({ state: "background", open: true });
    script.push({ type: "operation.settled", operation: "op_1", summary: "exit code 0" });
    folded([{ event: script.events.at(-1)! }], fold);
    expect(fold.facts().tasks[0]?.ended).toBe("exit code 0");
    expect(calls(fold)[0]).toMatchObject({ settled: "exit code 0", open: false });
    expect(lines(fold)).toEqual(["listening on 80", ""]);
  });

  it("with arguments of any form shows something harmless", () => {
    const strange = ["{", "null", "[1]", '{"__proto__":{"path":"x"}}', '{"path":5}', `{"command":"a\\u202eb"}`];
    const script = new Script().user("go").answer(
      "",
      "",
      strange.map((of) => ["Shell", of] as const),
    );
    script.answer("", "", [
      ["constructor", "{}"],
      ["__proto__", "{}"],
    ]);
    expect(calls(folded(script.fed())).map((item) => item.request.kind)).toEqual([
      "other",
      "other",
      "other",
      "other",
      "other",
      "shell",
      "other",
      "other",
    ]);
  });
});
