// @vitest-environment happy-dom
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type Follower, LiveSocket } from "./socket";
import { type FakeServer, fakeServer, realServer, settle } from "./testing/server";

let server: FakeServer;
let socket: LiveSocket;

beforeEach(() => {
  server = fakeServer();
  socket = new LiveSocket();
});

afterEach(() => {
  socket.signOut();
  realServer();
});

/** A follower that counts events. */
function follower(after = 0) {
  const told: string[] = [];
  const of: Follower = {
    after: () => after,
    event: ({ seq }) => {
      if (seq <= after) return "known";
      if (seq > after + 1) return "gap";
      after = seq;
      told.push(`event ${seq}`);
      return "taken";
    },
    live: () => told.push("live"),
    caughtUp: () => told.push("caught up"),
    behind: () => told.push("behind"),
    refused: (problem) => told.push(`refused ${problem.status}`),
  };
  return { told, of };
}

const event = (seq: number, session = "ses_1") => ({ type: "event", session, event: { seq } });
const subscribe = (after: number, session = "ses_1") => ({ type: "subscribe", session, after });

describe("the socket of a tab", () => {
  it("connects with a ticket and follows from the last event on, also after a loss", async () => {
    const { told, of } = follower(5);
    socket.follow("ses_1", of);
    expect(socket.getSnapshot().state).toBe("connecting");
    const first = (await server.next()).accept();
    expect(first.url).toMatch(/^ws:\/\/.*\/api\/v1\/stream\?ticket=ticket1$/);
    expect([socket.getSnapshot().state, first.take()]).toEqual(["live", [subscribe(5)]]);
    first
      .hears(event(6))
      .hears({ type: "live", session: "ses_1", live: {} })
      .hears(event(6))
      .hears({ type: "caught_up", session: "ses_1", seq: 6 });
    expect(told.splice(0)).toEqual(["event 6", "live", "caught up"]);
    vi.advanceTimersByTime(10_000);
    first.ends();
    expect(socket.getSnapshot()).toEqual({ state: "lost", since: 1_010_000, asOf: 1_000_000, nextAttempt: 1_010_250 });
    expect(told.splice(0)).toEqual(["behind"]);
    vi.advanceTimersByTime(250);
    const second = (await server.next()).accept();
    expect(second.take()).toEqual([subscribe(6)]);
    expect(socket.getSnapshot()).toEqual({ state: "live" });
  });

  it("waits longer after each failure, and connects at once when the network is back", async () => {
    server.status = 0;
    socket.signedIn();
    const waits = [];
    for (let attempt = 0; attempt < 9; attempt++) {
      await settle();
      const state = socket.getSnapshot();
      if (state.state !== "lost" || state.nextAttempt === null) throw new Error(state.state);
      waits.push(state.nextAttempt - Date.now());
      vi.advanceTimersByTime(state.nextAttempt - Date.now());
    }
    expect(waits).toEqual([250, 500, 1000, 2000, 4000, 8000, 15000, 15000, 15000]);
    await settle();
    expect(socket.getSnapshot()).toMatchObject({ state: "lost", since: 1_000_000, asOf: null });
    server.status = 201;
    window.dispatchEvent(new Event("online"));
    (await server.next()).accept();
    expect(socket.getSnapshot()).toEqual({ state: "live" });
  });

  it("moves to another server as it is told, without a word of loss", async () => {
    socket.signedIn();
    const first = (await server.next()).accept();
    first.hears({ type: "reconnect", within_ms: 4000 }).ends(1012);
    expect(socket.getSnapshot()).toEqual({ state: "connecting" });
    vi.advanceTimersByTime(3999);
    await settle();
    expect(server.tickets.length).toBe(1);
    vi.advanceTimersByTime(1);
    (await server.next()).accept();
    expect(socket.getSnapshot()).toEqual({ state: "live" });
  });

  it("says that nobody is signed in once a ticket is refused, and goes on after a sign-in", async () => {
    const { told, of } = follower();
    const out = vi.fn();
    socket.onSignedOut(out);
    socket.follow("ses_1", of);
    const first = (await server.next()).accept();
    server.status = 401;
    first.ends(1008);
    vi.advanceTimersByTime(250);
    await settle();
    expect([out.mock.calls.length, socket.getSnapshot().state]).toEqual([1, "idle"]);
    vi.advanceTimersByTime(100_000);
    socket.follow("ses_2", of);
    await settle();
    expect(server.tickets.length).toBe(2);
    server.status = 201;
    socket.signedIn();
    const second = (await server.next()).accept();
    expect(second.take()).toEqual([subscribe(0), subscribe(0, "ses_2")]);
    expect(told).not.toContain("refused 401");
  });

  it("asks again behind a gap, and gives the connection up if that does not help", async () => {
    const { told, of } = follower();
    socket.follow("ses_1", of);
    const first = (await server.next()).accept();
    first.hears(event(1)).hears(event(3));
    expect(first.take()).toEqual([subscribe(0), subscribe(1)]);
    first.hears({ type: "caught_up", session: "ses_1", seq: 3 });
    expect(first.take()).toEqual([subscribe(1)]);
    first.hears(event(2)).hears(event(3)).hears({ type: "caught_up", session: "ses_1", seq: 3 });
    expect(told.filter((what) => what !== "behind")).toEqual(["event 1", "event 2", "event 3", "caught up"]);
    for (let gap = 0; gap < 4; gap++) first.hears(event(9));
    expect([first.isClosed, socket.getSnapshot().state]).toEqual([true, "lost"]);
  });

  it("drops a session that is refused, and asks again for one that cannot be served now", async () => {
    const [gone, busy] = [follower(), follower()];
    socket.follow("ses_1", gone.of);
    socket.follow("ses_2", busy.of);
    const first = (await server.next()).accept();
    first.take();
    first.hears({ type: "problem", session: "ses_1", problem: { status: 404, detail: "gone" } });
    first.hears({ type: "problem", session: "ses_2", problem: { status: 503, detail: "busy" } });
    expect([gone.told, busy.told]).toEqual([["behind", "refused 404"], ["behind"]]);
    vi.advanceTimersByTime(250);
    expect(first.take()).toEqual([subscribe(0, "ses_2")]);
  });

  it("follows at most 16 sessions: the one that was used longest ago waits until it is used again", async () => {
    socket.signedIn();
    const first = (await server.next()).accept();
    const following = Array.from({ length: 17 }, (_, at) => socket.follow(`ses_${at}`, follower().of));
    const said = first.take();
    expect(said.slice(-2)).toEqual([{ type: "unsubscribe", session: "ses_0" }, subscribe(0, "ses_16")]);
    following[1]?.touch();
    following[0]?.touch();
    expect(first.take()).toEqual([{ type: "unsubscribe", session: "ses_2" }, subscribe(0, "ses_0")]);
    following[5]?.close();
    expect(first.take()).toEqual([{ type: "unsubscribe", session: "ses_5" }]);
  });

  it("watches lists, and says once after each connection that all of them may be different", async () => {
    const [runners, all] = [vi.fn(), vi.fn()];
    const end = socket.onChanged(["runners"], runners);
    socket.onChanged(["sessions", "runners"], all);
    const first = (await server.next()).accept();
    expect(first.take()).toEqual([{ type: "watch", topics: ["runners", "sessions"] }]);
    first.hears({ type: "changed", topics: ["sessions"], sessions: ["ses_1"] });
    expect([runners.mock.calls, all.mock.calls]).toEqual([[], [[["sessions"], ["ses_1"]]]]);
    end();
    socket.onChanged(["sessions"], runners);
    expect(first.take()).toEqual([]);
    socket.onChanged(["people"], runners);
    expect(first.take()).toEqual([{ type: "watch", topics: ["people", "runners", "sessions"] }]);
    first.ends();
    vi.advanceTimersByTime(250);
    expect((await server.next()).accept().take()).toHaveLength(1);
  });

  it("finds a dead connection by a question that has no answer", async () => {
    socket.follow("ses_1", follower(7).of);
    const first = (await server.next()).accept();
    first.take();
    vi.advanceTimersByTime(29_999);
    expect(first.take()).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(first.take()).toEqual([subscribe(7)]);
    first.hears({ type: "caught_up", session: "ses_1", seq: 7 });
    vi.advanceTimersByTime(30_000);
    expect([first.take(), socket.getSnapshot().state]).toEqual([[subscribe(7)], "live"]);
    vi.advanceTimersByTime(8_000);
    expect([first.isClosed, socket.getSnapshot()]).toMatchObject([true, { state: "lost", asOf: 1_030_000 }]);
  });

  it("tries the connection when the page is shown again, and asks for no list again and again", async () => {
    socket.onChanged(["runners"], () => undefined);
    const first = (await server.next()).accept();
    first.take();
    document.dispatchEvent(new Event("visibilitychange"));
    vi.advanceTimersByTime(60_000);
    expect(first.take()).toEqual([]);
    document.dispatchEvent(new Event("visibilitychange"));
    expect(first.take()).toEqual([{ type: "watch", topics: ["runners"] }]);
    vi.advanceTimersByTime(8_000);
    expect(socket.getSnapshot().state).toBe("lost");
  });

  it("does not wait for ever for a connection to open", async () => {
    socket.signedIn();
    const first = await server.next();
    vi.advanceTimersByTime(8_000);
    expect([first.isClosed, socket.getSnapshot().state]).toEqual([true, "lost"]);
  });
});
