import { describe, expect, it } from "vitest";
import type { Fold } from "./fold";
import type { MessageItem } from "./model";
import { folded, said, Script, shown, turn } from "./testing/script";

const messages = (fold: Fold) => fold.items().filter((item): item is MessageItem => item.kind === "message");

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
    const script = new Script().user("go").said("later");
    script.turn = 1;
    script.steered("left", 1).answer("", "one").steered("right", 2);
    script.push({ type: "steers.taken", turn: turn(1), step: 2, through: 1 });
    const fold = folded(script.fed());
    expect(shown(fold)).toEqual([
      "now: go",
      "text: one",
      "steered: left",
      "steered waiting: right",
      "queued waiting: later",
    ]);
    expect(messages(fold).every((item) => item.rewindable === (item.text === "go"))).toBe(true);
    script.done("failed");
    folded([{ event: script.events.at(-1)! }], fold);
    expect(shown(fold).slice(3, 5)).toEqual(["steered waiting: right", "(turn_ended)"]);
    script.push({ type: "steers.taken", turn: turn(1), step: 0, through: 2, into: turn(9) });
    folded([{ event: script.events.at(-1)! }], fold);
    expect(shown(fold)).toEqual(["now: go", "text: one", "steered: left", "(turn_ended)", "queued waiting: later"]);
  });

  it("that a stopped turn left wait for the next one, unless they were gone back from", () => {
    const stopped = (script: Script) => script.steered("use tabs", 1).done("cancelled");
    const script = stopped(new Script().user("go"));
    const fold = folded(script.fed());
    expect(shown(fold)).toEqual(["now: go", "steered waiting: use tabs", "(turn_ended)"]);
    folded(script.said("next").fed(), fold);
    expect(shown(fold)).toContain("steered waiting: use tabs");
    folded(script.claimed().fed(), fold);
    expect(shown(fold)).toEqual(["now: go", "left: use tabs", "(turn_ended)", "now: next"]);
    const back = stopped(new Script().user("go")).rewound(1).user("anew");
    expect(shown(folded(back.fed()))).toContain("~steered waiting: use tabs");
  });

  it("that steer while an answer streams stand where they stand after a reload", () => {
    const script = new Script().user("go");
    const fold = folded(script.fed());
    fold.live(said(1, 1, 1, 0, 0, "ans"));
    script
      .steered("left", 1)
      .answer("", "answer", [["Read", { path: "a" }]], "other")
      .ended(0, "completed", "x");
    script.push({ type: "steers.taken", turn: turn(1), step: 2, through: 1 }).answer("", "two");
    folded(script.fed(), fold);
    expect(shown(fold)).toEqual(shown(folded(script.fed())));
    expect(shown(fold).slice(0, 4)).toEqual(["now: go", "text: answer", "Read ended", "steered: left"]);
  });

  it("that were gone back from are marked, with all that came after", () => {
    const script = new Script()
      .user("one")
      .todo([{ text: "a", state: "open" }])
      .done();
    script
      .user("two")
      .todo([{ text: "b", state: "doing" }])
      .ran("Write", { path: "f", content: "x" }, "made f with 1 bytes")
      .done();
    script.rewound(2).user("three");
    const fold = folded(script.fed());
    expect(shown(fold)).toEqual([
      "now: one",
      "todo 1",
      "(turn_ended)",
      "~now: two",
      "~todo 1",
      "~Write ended",
      "~(turn_ended)",
      "(rewound)",
      "now: three",
    ]);
    expect(fold.facts().todo).toEqual([{ text: "a", state: "open" }]);
    expect(fold.facts().files[0]?.changes[0]?.rewound).toBe(true);
    expect(messages(fold).map((item) => item.rewindable)).toEqual([true, false, true]);
  });
});
