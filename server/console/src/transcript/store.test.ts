// @vitest-environment happy-dom
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Follower } from "@/live/socket";
import { Transcripts } from "./store";
import { said, Script } from "./testing/script";

const followers = new Map<string, Follower>();
const closed: string[] = [];
const socket = {
  follow: (session: string, follower: Follower) => {
    followers.set(session, follower);
    return { touch: () => undefined, close: () => closed.push(session) };
  },
};

beforeEach(() => {
  vi.useFakeTimers({
    now: 1_000_000,
    toFake: ["setTimeout", "clearTimeout", "Date", "requestAnimationFrame", "cancelAnimationFrame"],
  });
  followers.clear();
  closed.length = 0;
});

afterEach(() => vi.useRealTimers());

const frame = () => vi.advanceTimersByTime(20);

describe("the conversation of a session", () => {
  it("shows items once the log was read, and tells changes once per frame", () => {
    const transcript = new Transcripts(socket).of("ses_1");
    const follower = followers.get("ses_1")!;
    const listener = vi.fn();
    transcript.subscribe(listener);
    const { events } = new Script().user("go").answer("", "hi").done();
    events.forEach((event) => follower.event(event));
    frame();
    expect(transcript.getSnapshot()).toMatchObject({ status: "loading", items: [], seq: 4 });
    follower.caughtUp();
    frame();
    const ready = transcript.getSnapshot();
    expect(ready).toMatchObject({ status: "ready", caughtUp: true, seq: 4 });
    expect(ready.items.length).toBe(3);
    expect(listener).toHaveBeenCalledTimes(2);
    for (let piece = 0; piece < 100; piece++) follower.live(said(2, 1, 1, 0, piece, "x"));
    expect(transcript.getSnapshot()).toBe(ready);
    frame();
    expect(listener).toHaveBeenCalledTimes(3);
    expect(transcript.getSnapshot().items.slice(0, 3)).toEqual(ready.items);
    expect(transcript.getSnapshot().facts).toBe(ready.facts);
  });

  it("that is hidden is told within 50 ms", () => {
    vi.spyOn(document, "visibilityState", "get").mockReturnValue("hidden");
    const transcript = new Transcripts(socket).of("ses_1");
    const listener = vi.fn();
    transcript.subscribe(listener);
    followers.get("ses_1")?.caughtUp();
    vi.advanceTimersByTime(49);
    expect(listener).toHaveBeenCalledTimes(0);
    vi.advanceTimersByTime(1);
    expect(listener).toHaveBeenCalledTimes(1);
    vi.restoreAllMocks();
  });

  it("stays as it is while the connection is lost, and nothing changes where nothing was missed", () => {
    const transcript = new Transcripts(socket).of("ses_1");
    const follower = followers.get("ses_1")!;
    new Script()
      .user("go")
      .answer("", "hi")
      .done()
      .events.forEach((event) => follower.event(event));
    follower.caughtUp();
    frame();
    const before = transcript.getSnapshot();
    follower.behind();
    frame();
    expect(transcript.getSnapshot()).toMatchObject({ status: "ready", caughtUp: false });
    expect(follower.after()).toBe(4);
    follower.caughtUp();
    frame();
    expect(transcript.getSnapshot()).toEqual(before);
    expect(transcript.getSnapshot().items).toBe(before.items);
  });

  it("that is refused says why, and can be asked for again", () => {
    const transcript = new Transcripts(socket).of("ses_1");
    followers
      .get("ses_1")
      ?.refused({ type: "/problems/not_found", code: "not_found", status: 404, detail: "session not found" });
    frame();
    expect(transcript.getSnapshot()).toMatchObject({ status: "refused", problem: { status: 404 } });
    transcript.retry();
    frame();
    expect(transcript.getSnapshot()).toMatchObject({ status: "loading", problem: null });
  });

  it("is kept for the last sessions, and for those that are shown", () => {
    const transcripts = new Transcripts(socket);
    const first = transcripts.of("ses_0");
    const end = first.subscribe(() => undefined);
    for (let session = 1; session <= 8; session++) transcripts.of(`ses_${session}`);
    expect(closed).toEqual(["ses_1"]);
    expect(transcripts.of("ses_0")).toBe(first);
    end();
    transcripts.of("ses_9");
    expect(closed).toEqual(["ses_1", "ses_2", "ses_3"]);
  });
});
