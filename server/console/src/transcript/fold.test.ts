import { describe, expect, it, vi } from "vitest";
import { Fold } from "./fold";
import type { CallItem, MessageItem } from "./model";
import { folded, said, Script, shown, turn, wrote } from "./testing/script";

const calls = (fold: Fold) => fold.items().filter((item): item is CallItem => item.kind === "call");
const messages = (fold: Fold) => fold.items().filter((item): item is MessageItem => item.kind === "message");
const lines = (fold: Fold) => calls(fold)[0]?.output?.lines().map((line) => (line.kind === "text" ? line.spans.map((span) => span.text).join("") : `<${line.bytes}>`));

describe("an answer", () => {
  it("is the same live and recorded, wherever its pieces are cut", () => {
    const script = new Script().created().user("go").answer("思考 🤔", "你好，世界 👩‍👩‍👧 grüße", []).done();
    const plain = shown(folded(script.fed()));
    for (const letters of [1, 2, 3, 7, 100]) expect(shown(folded(script.fedLive(letters)))).toEqual(plain);
    expect(plain[1]).toBe("thoughts: 思考 🤔 | text: 你好，世界 👩‍👩‍👧 grüße");
  });

  it("keeps its parts when the log records what was seen", () => {
    const script = new Script().user("go").answer("", "the answer");
    const fed = script.fedLive(3);
    const fold = folded(fed.slice(0, -1));
    const seen = fold.items().at(-1);
    folded(fed.slice(-1), fold);
    const after = fold.items().at(-1);
    expect(after?.id).toBe(seen?.id);
    expect(after).toMatchObject({ open: false, parts: [{ text: "the answer", open: false }], record: { model: "gpt-5" } });
  });

  it("takes pieces twice, out of order and in the middle of characters by their offsets", () => {
    const fold = folded(new Script().user("go").fed());
    for (const [offset, text] of [[0, "grü"], [0, "grü"], [6, "e 日"], [2, "üß"], [10, "本"], [3, "x"]] as const) {
      fold.live(said(1, 1, 1, 0, offset, text));
    }
    // "grü" has 4 bytes, "ß" ends at 6, "e 日" at 11: the piece at 10 begins within 日.
    expect(shown(fold).at(-1)).toBe("text…: grüße 日");
  });

  it("is dropped after its event, and after the end of its turn", () => {
    const script = new Script().user("go").answer("", "whole");
    const fold = folded(script.fed());
    fold.live(said(1, 1, 1, 0, 5, " more"));
    expect(shown(fold).at(-1)).toBe("text: whole");
    folded([{ event: script.done().events.at(-1)! }], fold);
    fold.live(said(1, 2, 1, 0, 0, "late"));
    expect(shown(fold).at(-1)).toBe("(turn_ended)");
  });

  it("is taken back with its attempt; a later attempt begins again and an earlier one is void", () => {
    const fold = folded(new Script().user("go").fed());
    fold.live(said(1, 1, 1, 0, 0, "first"));
    fold.live(said(1, 1, 2, 0, 0, "second"));
    fold.live(said(1, 1, 1, 0, 5, " again"));
    expect(shown(fold).at(-1)).toBe("text…: second");
    fold.live({ kind: "taken_back", turn: turn(1), step: 1, attempt: 2 });
    expect(shown(fold)).toEqual(["now: go"]);
    fold.live(said(1, 1, 2, 0, 6, "stray"));
    fold.live({ kind: "notice", turn: turn(1), text: "Retrying in 4 s (2 of 5)" });
    expect(shown(fold)).toEqual(["now: go", "(notice)"]);
    expect(fold.facts().working?.activity).toMatchObject({ what: "notice", text: "Retrying in 4 s (2 of 5)" });
    fold.live(said(1, 1, 3, 0, 0, "third"));
    expect(shown(fold)).toEqual(["now: go", "text…: third"]);
  });

  it("that is left without a record stays as it is", () => {
    const script = new Script().user("go");
    const fold = folded(script.fed());
    fold.live(said(1, 1, 1, 0, 0, "half"));
    folded([{ event: script.done("failed", "the server stopped").events.at(-1)! }], fold);
    expect(shown(fold)).toEqual(["now: go", "text: half", "(turn_ended)"]);
    expect(fold.items().every((item) => !item.open)).toBe(true);
  });

  it("changes only its own item, and only in a new snapshot", () => {
    const script = new Script().user("go").answer("", "one", [["Read", { path: "a" }]]).ended(0, "completed", "x");
    const fold = folded(script.fed());
    const before = fold.items();
    expect(fold.items()).toBe(before);
    fold.live(said(1, 2, 1, 0, 0, "two"));
    const after = fold.items();
    expect(after).not.toBe(before);
    before.forEach((item, at) => expect(after[at]).toBe(item));
    fold.live(said(1, 2, 1, 1, 0, "three"));
    const last = fold.items().at(-1);
    const first = after.at(-1);
    expect(last).not.toBe(first);
    expect(fold.items().slice(0, -1)).toEqual(before);
  });

  it("of calls alone has no item", () => {
    const fold = folded(new Script().user("go").answer("", "", [["Read", { path: "a" }]]).fed());
    expect(shown(fold)).toEqual(["now: go", "Read asked"]);
  });
});

describe("a feed", () => {
  it("drops events that come twice and refuses one behind a gap", () => {
    const script = new Script().user("go").answer("", "hi");
    const fold = new Fold();
    expect(script.events.map((event) => fold.event(event))).toEqual(["taken", "taken", "taken"]);
    expect(fold.event(script.events[1]!)).toBe("known");
    expect(fold.event({ ...script.events[2]!, seq: 5 })).toBe("gap");
    expect([fold.seq, shown(fold).length]).toEqual([3, 2]);
  });

  it("goes on in mid-stream after a new connection: what is sent again changes nothing", () => {
    const script = new Script().user("go");
    const fold = folded(script.fed());
    fold.caughtUp();
    fold.live(said(1, 1, 1, 0, 0, "hello"));
    fold.behind();
    // The server sends the whole text so far again.
    fold.caughtUp();
    fold.live(said(1, 1, 1, 0, 0, "hello world"));
    fold.live(said(1, 1, 1, 0, 11, "!"));
    expect(shown(fold).at(-1)).toBe("text…: hello world!");
  });

  it("skips kinds and versions that it does not know, and survives an event that is not as it should be", () => {
    const warn = vi.spyOn(console, "warn").mockImplementation(() => undefined);
    const script = new Script().user("go").answer("", "hi").done();
    const strange = [
      { seq: 1, at: "x", v: 1, type: "turn.teleported", to: "mars" },
      { seq: 2, at: "x", v: 1, type: "constructor" },
      { ...script.events[0]!, v: 99, seq: 3 },
      { seq: 4, at: "x", v: 1, type: "input.accepted", turn: "trn_1" },
    ];
    const fold = folded([...strange.map((event) => ({ event: event as never })), ...script.events.map((event) => ({ event: { ...event, seq: event.seq + 4 } }))]);
    expect(shown(fold)).toEqual(["now: go", "text: hi", "(turn_ended)"]);
    expect([fold.unreadable, warn.mock.calls.length]).toEqual([1, 1]);
  });
});

describe("messages", () => {
  it("that wait stand behind all others until their turn is claimed", () => {
    const script = new Script().user("one").said("two").said("three");
    const fold = folded(script.fed());
    fold.live(said(1, 1, 1, 0, 0, "working"));
    expect(shown(fold)).toEqual(["now: one", "text…: working", "queued waiting: two", "queued waiting: three"]);
    expect(fold.facts().queue.map((queued) => queued.text)).toEqual(["two", "three"]);
    script.done("completed", undefined, 1);
    folded([{ event: script.events.at(-1)! }], fold);
    expect(fold.facts().working).toMatchObject({ turn: turn(2), activity: { what: "server" } });
    script.claimed(2);
    folded([{ event: script.events.at(-1)! }], fold);
    expect(shown(fold)).toEqual(["now: one", "text: working", "(turn_ended)", "queued: two", "queued waiting: three"]);
    expect(fold.facts().queue.length).toBe(1);
    script.done("cancelled", undefined, 3);
    folded([{ event: script.events.at(-1)! }], fold);
    expect(shown(fold).slice(-2)).toEqual(["queued: three", "(turn_ended)"]);
  });

  it("that steer wait until they are taken, or become another turn's", () => {
    const script = new Script().user("go").steered("left", 1).steered("right", 2);
    script.push({ type: "steers.taken", turn: turn(1), step: 2, through: 1 });
    const fold = folded(script.fed());
    expect(messages(fold).map((item) => item.waiting)).toEqual([false, false, true]);
    script.push({ type: "steers.taken", turn: turn(1), step: 0, through: 2, into: turn(9) });
    folded([{ event: script.events.at(-1)! }], fold);
    expect(messages(fold).at(-1)).toMatchObject({ waiting: false, movedTo: turn(9), rewindable: false });
  });

  it("that were gone back from are marked, with all that came after", () => {
    const script = new Script().user("one").todo([{ text: "a", state: "open" }]).done();
    script.user("two").todo([{ text: "b", state: "doing" }]).ran("Write", { path: "f", content: "x" }, "made f with 1 bytes").done();
    script.rewound(2).user("three");
    const fold = folded(script.fed());
    expect(shown(fold)).toEqual([
      "now: one", "todo 1", "(turn_ended)", "~now: two", "~todo 1", "~Write ended", "~(turn_ended)", "(rewound)", "now: three",
    ]);
    expect(fold.facts().todo).toEqual([{ text: "a", state: "open" }]);
    expect(fold.facts().files[0]?.changes[0]?.rewound).toBe(true);
    expect(messages(fold).map((item) => item.rewindable)).toEqual([true, false, true]);
  });
});

describe("a call", () => {
  const shell = ["Shell", { command: "make" }] as const;

  it("goes from asked to its end, with its place, its output and its exit code", () => {
    const script = new Script().user("go").answer("", "", [shell]);
    const fold = folded(script.fed());
    expect(calls(fold)[0]).toMatchObject({ state: "asked", request: { kind: "shell", command: "make" } });
    folded([{ event: script.placed(0).events.at(-1)! }], fold);
    expect(calls(fold)[0]).toMatchObject({ state: "running", operation: "op_1", place: { runnerName: "laptop", isolation: "none" } });
    fold.live(wrote(0, "\x1b[31mone\n"));
    fold.live(wrote(9, "two\n"));
    expect(lines(fold)).toEqual(["one", "two"]);
    script.ended(0, "completed", "one\ntwo\n[exit code 2, after 3 s]", { overran: true });
    folded([{ event: script.events.at(-1)! }], fold);
    expect(calls(fold)[0]).toMatchObject({ state: "ended", open: false, end: { exit: 2, failed: true, overran: true, reason: "" } });
    expect(lines(fold)).toEqual(["one", "two"]);
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
    const script = new Script().user("go").answer("", "", [shell, shell, ["Read", { path: "a" }]]).placed(0);
    const fold = folded(script.fed());
    fold.live(wrote(0, "one\ntwo\nthree\n"));
    script.ended(0, "completed", `one\n[… 4 bytes left out …]\nthree\n[exit code 3, after 11 s]\n${advice}`);
    script.ended(1, "completed", "[stdout]\na\n[stderr]\nb\n[ended by signal 9; processes that it started may still run]");
    script.ended(2, "completed", `text\n${advice}`);
    folded(script.fed().slice(-3), fold);
    expect(lines(fold)).toEqual(["one", "two", "three"]);
    expect(calls(fold).map(({ end }) => [end?.exit, end?.excerpt])).toEqual([[3, true], [null, false], [null, true]]);
    expect(calls(fold)[1]?.end).toMatchObject({ failed: true, reason: "ended by signal 9; processes that it started may still run" });
    expect(calls(fold)[2]?.result).toBe("text");
  });

  it("shows what is missing of its output, and what came before a late reader", () => {
    const fold = folded(new Script().user("go").answer("", "", [shell]).placed(0).fed());
    fold.live(wrote(1000, "late\n"));
    fold.live(wrote(1000, "late\n"));
    fold.live(wrote(1105, "more\n"));
    fold.live({ kind: "gap", turn: turn(1), step: 1, ordinal: 0, operation: "op_1", stream: "stdout", from: 1110, to: 1200 });
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
  });

  it("that people are asked about says so, and who answered elsewhere", () => {
    const question = { kind: "call", tool: "Shell", text: "rm -rf x\u200b\x1b[2J", risk: "high", why: "mode" } as never;
    const script = new Script().user("go").answer("", "", [shell]).asked(0, question);
    const fold = folded(script.fed());
    expect(calls(fold)[0]).toMatchObject({ state: "approval", approval: { question: { text: "rm -rf x<U+200B>␛[2J" }, answered: null } });
    expect(fold.facts().approvals.length).toBe(1);
    expect(fold.facts().working?.activity).toMatchObject({ what: "person", call: calls(fold)[0]?.id });
    folded([{ event: script.answered(0, { outcome: "denied", words: "no" }).events.at(-1)! }], fold);
    expect(calls(fold)[0]).toMatchObject({ state: "asked", approval: { answered: { name: "kim", answer: { words: "no" } } } });
    expect([fold.facts().approvals.length, fold.facts().people["usr_2"]]).toEqual([0, "kim"]);
  });

  it("of a turn that ends first is left, and its question with it", () => {
    const script = new Script().user("go").answer("", "", [shell]).asked(0, { kind: "plan", text: "x" }).done("cancelled");
    const fold = folded(script.fed());
    expect(calls(fold)[0]).toMatchObject({ state: "left", open: false });
    expect([fold.facts().approvals.length, fold.facts().working]).toEqual([0, null]);
  });

  it("in the background is a task with its last line until it has settled", () => {
    const script = new Script().user("go").answer("", "", [["Shell", { command: "make serve" }]]).placed(0);
    script.ended(0, "background", "[goes on in the background as task 1]", { task: 1 }).done();
    const fold = folded(script.fed());
    fold.live(wrote(0, "listening on 80\n\n"));
    fold.items();
    expect(fold.facts().tasks).toMatchObject([{ number: 1, about: "make serve", lastLine: "listening on 80", ended: null }]);
    expect(calls(fold)[0]).toMatchObject({ state: "background", open: true });
    script.push({ type: "operation.settled", operation: "op_1", summary: "exit code 0" });
    folded([{ event: script.events.at(-1)! }], fold);
    expect(fold.facts().tasks[0]?.ended).toBe("exit code 0");
    expect(calls(fold)[0]).toMatchObject({ settled: "exit code 0", open: false });
    expect(lines(fold)).toEqual(["listening on 80", ""]);
  });

  it("with arguments of any form shows something harmless", () => {
    const strange = ["{", "null", "[1]", '{"__proto__":{"path":"x"}}', '{"path":5}', `{"command":"a\\u202eb"}`];
    const script = new Script().user("go").answer("", "", strange.map((of) => ["Shell", of] as const));
    script.answer("", "", [["constructor", "{}"], ["__proto__", "{}"]]);
    expect(calls(folded(script.fed())).map((item) => item.request.kind)).toEqual([
      "other", "other", "other", "other", "other", "shell", "other", "other",
    ]);
  });
});

describe("facts", () => {
  it("say what a turn waits for at each step", () => {
    const script = new Script().user("go").answer("", "", [["Shell", { command: "make" }], ["Read", { path: "a" }]]);
    script.placed(0).asked(1, { kind: "plan", text: "x" }).answered(1, { outcome: "allowed" });
    script.ended(0, "completed", "").ended(1, "completed", "").done();
    const fold = new Fold();
    const seen = script.events.map((event) => {
      fold.event(event);
      return fold.facts().working?.activity.what ?? "nothing";
    });
    expect(seen).toEqual(["server", "model", "calls", "calls", "person", "calls", "calls", "model", "nothing"]);
  });

  it("count tokens by turn, by session and by model", () => {
    const script = new Script().created("t", "other").user("go").answer("", "a").answer("", "b").done();
    script.user("on").answer("", "c", [], "opus").done();
    const fold = folded(script.fed());
    const { last, usage, turnUsage, models } = fold.facts();
    expect([last.input, turnUsage.output, usage.output, usage.input]).toEqual([1000, 100, 300, 4000]);
    expect(models.map((use) => [use.model, use.answers])).toEqual([["gpt-5", 2], ["opus", 1]]);
    expect(shown(fold).filter((item) => item === "(model_changed)").length).toBe(2);
    const end = fold.items().find((item) => item.kind === "note" && item.note.type === "turn_ended");
    expect(end).toMatchObject({ note: { steps: 2, usage: { output: 200 } } });
  });

  it("have edits and writes that ended well by file", () => {
    const edit = { path: "a.rs", old: "x", new: "y" };
    const script = new Script().user("go").ran("Edit", edit, "edited a.rs at line 3");
    script.ran("write_file", { path: "b.rs", content: "z" }, "made b.rs with 1 bytes").ran("Edit", edit, "edited a.rs at line 3");
    script.answer("", "", [["Edit", edit]]).ended(0, "failed", "failed: not found");
    const fold = folded(script.fed());
    expect(fold.facts().files.map((file) => [file.path, file.changes.length])).toEqual([["a.rs", 2], ["b.rs", 1]]);
    expect(fold.facts().files[0]?.changes[0]).toMatchObject({ line: 3 });
    expect(calls(fold).at(-1)?.end).toMatchObject({ failed: true, reason: "not found" });
    expect(fold.facts().files).toBe(fold.facts().files);
  });
});
