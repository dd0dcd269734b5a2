import { describe, expect, it, vi } from "vitest";
import { Fold } from "./fold";
import type { CallItem } from "./model";
import { replacedFile } from "./results";
import { folded, said, Script, shown, turn } from "./testing/script";

const calls = (fold: Fold) => fold.items().filter((item): item is CallItem => item.kind === "call");

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
    expect(after).toMatchObject({
      open: false,
      parts: [{ text: "the answer", open: false }],
      record: { model: "gpt-5" },
    });
  });

  it("takes pieces twice, out of order and in the middle of characters by their offsets", () => {
    const fold = folded(new Script().user("go").fed());
    for (const [offset, text] of [
      [0, "grü"],
      [0, "grü"],
      [6, "e 日"],
      [2, "üß"],
      [10, "本"],
      [3, "x"],
    ] as const) {
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
    const script = new Script()
      .user("go")
      .answer("", "one", [["Read", { path: "a" }]])
      .ended(0, "completed", "x");
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
    const fold = folded(
      new Script()
        .user("go")
        .answer("", "", [["Read", { path: "a" }]])
        .fed(),
    );
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

  it("shows the same after a reload at every stage of a turn", () => {
    const script = new Script().created("t", "gpt-5").user("one").steered("left", 1);
    script.answer("hm", "Let me see. 你好", [
      ["Shell", { command: "make" }],
      ["Write", { path: "f", content: "x" }],
    ]);
    script.placed(0).asked(1, { kind: "plan", text: "x" }).answered(1, { outcome: "allowed" }).placed(1);
    script.ended(1, "completed", "made f with 1 bytes").ended(0, "background", "[task 1]", { task: 1 });
    script.push({ type: "steers.taken", turn: turn(1), step: 2, through: 1 }).todo([{ text: "a", state: "doing" }]);
    script.answer("", "Done with it. 🤔", [], "opus").done();
    script
      .user("two")
      .claimed()
      .answer("", "Again.", [["Read", { path: "f" }]])
      .done("cancelled", "stopped")
      .rewound(2);
    script.user("three").answer("so", "On.").done();
    const whole = script.fedLive(3);
    for (let stage = 0; stage <= whole.length; stage++) {
      const fed = whole.slice(0, stage);
      const last = fed.findLastIndex((one) => "event" in one);
      const live = folded(fed);
      // A new page reads the log, and is then sent what is under way.
      const again = folded([...fed.filter((one) => "event" in one), ...fed.slice(last + 1)]);
      expect(again.items(), `stage ${stage}`).toEqual(live.items());
      expect(again.facts()).toEqual(live.facts());
    }
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
    const fold = folded([
      ...strange.map((event) => ({ event: event as never })),
      ...script.events.map((event) => ({ event: { ...event, seq: event.seq + 4 } })),
    ]);
    expect(shown(fold)).toEqual(["now: go", "text: hi", "(turn_ended)"]);
    expect([fold.unreadable, warn.mock.calls.length]).toEqual([1, 1]);
  });
});

describe("facts", () => {
  it("say what a turn waits for at each step", () => {
    const script = new Script().user("go").answer("", "", [
      ["Shell", { command: "make" }],
      ["Read", { path: "a" }],
    ]);
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
    expect(models.map((use) => [use.model, use.answers])).toEqual([
      ["gpt-5", 2],
      ["opus", 1],
    ]);
    expect(shown(fold).filter((item) => item === "(model_changed)").length).toBe(2);
    const end = fold.items().find((item) => item.kind === "note" && item.note.type === "turn_ended");
    expect(end).toMatchObject({ note: { steps: 2, usage: { output: 200 } } });
  });

  it("have edits and writes that ended well by file", () => {
    const edit = { path: "a.rs", old: "x", new: "y" };
    const script = new Script().user("go").ran("Edit", edit, "edited a.rs at line 3");
    script
      .ran("write_file", { path: "b.rs", content: "z" }, "made b.rs with 1 bytes")
      .ran("Edit", edit, "edited a.rs at line 3");
    script.answer("", "", [["Edit", edit]]).ended(0, "failed", "failed: not found");
    const fold = folded(script.fed());
    expect(fold.facts().files.map((file) => [file.path, file.changes.length])).toEqual([
      ["a.rs", 2],
      ["b.rs", 1],
    ]);
    expect(fold.facts().files[0]?.changes[0]).toMatchObject({ line: 3 });
    expect(calls(fold).at(-1)?.end).toMatchObject({ failed: true, reason: "not found" });
    expect(fold.facts().files).toBe(fold.facts().files);
  });

  it("tell a file that was made from one that was replaced, and nothing of one that stayed", () => {
    const write = { path: "a", content: "x" };
    const script = new Script().user("go").ran("Write", write, "made a with 1 bytes");
    script.ran("Write", write, "replaced a, which now has 1 bytes");
    script.ran("Write", write, "a has these 1 bytes already; nothing changed");
    const fold = folded(script.fed());
    expect(fold.facts().files[0]?.changes).toMatchObject([{ made: true }, { made: false }]);
    expect(calls(fold).map(replacedFile)).toEqual([false, true, false]);
  });
});
