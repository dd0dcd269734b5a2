import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { addImage } from "@/api/images";
import { sendMessage } from "@/api/messages";

vi.mock("@/api/messages", () => ({ sendMessage: vi.fn() }));
vi.mock("@/api/images", () => ({ addImage: vi.fn() }));
vi.mock("@/api/sessions", () => ({ sessionsChanged: () => Promise.resolve() }));

const taken = { turn: "trn_1", seq: 2 };
const values = new Map<string, string>();

/** The outbox of a page that has just been loaded, and the errors that it knows. */
async function load() {
  vi.resetModules();
  const { ProblemError } = await import("@/api/problem");
  const unreachable = new ProblemError({ code: "unreachable", status: 0, detail: "no answer" });
  const refused = new ProblemError({ code: "forbidden", status: 403, detail: "not allowed" });
  return { outbox: await import("./outbox"), unreachable, refused };
}

function calls(): [string | null | undefined, string][] {
  return vi.mocked(sendMessage).mock.calls.map(([, body]) => [body.client_id, body.text]);
}

const text = (written: string) => ({ text: written, images: [], how: "steer" as const });

describe("the outbox", () => {
  beforeEach(() => {
    vi.useFakeTimers();
    vi.mocked(sendMessage).mockReset().mockResolvedValue(taken);
    vi.mocked(addImage).mockReset();
    values.clear();
    vi.stubGlobal("addEventListener", () => undefined);
    vi.stubGlobal("removeEventListener", () => undefined);
    vi.stubGlobal("localStorage", {
      getItem: (name: string) => values.get(name) ?? null,
      setItem: (name: string, value: string) => values.set(name, value),
      removeItem: (name: string) => values.delete(name),
    });
  });

  afterEach(() => {
    vi.useRealTimers();
    vi.unstubAllGlobals();
  });

  it("sends again with the same id until the server has the message", async () => {
    const { outbox, unreachable } = await load();
    vi.mocked(sendMessage).mockRejectedValueOnce(unreachable).mockRejectedValueOnce(unreachable);
    const heard = vi.fn();
    outbox.onMessageSent(heard);
    outbox.post("ann", "ses_1", text("hello"));
    await vi.advanceTimersByTimeAsync(5000);
    expect(calls()).toHaveLength(3);
    expect(new Set(calls().map(([id]) => id)).size).toBe(1);
    expect(heard).toHaveBeenCalledExactlyOnceWith("ses_1", taken);
    expect(values.size).toBe(0);
  });

  it("keeps the order, and stops at a refused message until the person decides", async () => {
    const { outbox, refused } = await load();
    vi.mocked(sendMessage).mockRejectedValueOnce(refused);
    outbox.post("ann", "ses_1", text("first"));
    outbox.post("ann", "ses_1", text("second"));
    await vi.advanceTimersByTimeAsync(60_000);
    expect(calls().map(([, sent]) => sent)).toEqual(["first"]);
    outbox.takeBack("ann", "ses_1", calls()[0]?.[0] ?? "");
    await vi.advanceTimersByTimeAsync(0);
    expect(calls().map(([, sent]) => sent)).toEqual(["first", "second"]);
  });

  it("gives back a message that waits, but not one that is on its way", async () => {
    const { outbox, unreachable } = await load();
    vi.mocked(sendMessage).mockRejectedValueOnce(unreachable);
    for (const written of ["first", "second", "third"]) outbox.post("ann", "ses_1", text(written));
    const [first, second] = JSON.parse(values.get("gantry.outbox.ann.ses_1") ?? "[]") as { id: string }[];
    expect(outbox.takeBack("ann", "ses_1", first?.id ?? "")).toBe(false);
    expect(outbox.takeBack("ann", "ses_1", second?.id ?? "")).toBe(true);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(calls().map(([, sent]) => sent)).toEqual(["first", "first", "third"]);
  });

  it("sends after a reload what an earlier page left, with its id", async () => {
    const { outbox: before, unreachable } = await load();
    vi.mocked(sendMessage).mockRejectedValue(unreachable);
    before.post("ann", "ses_1", text("left"));
    await vi.advanceTimersByTimeAsync(0);
    const [first] = calls();
    vi.mocked(sendMessage).mockReset().mockResolvedValue(taken);
    const { outbox: after } = await load();
    after.resume("ann", "ses_1");
    await vi.advanceTimersByTimeAsync(0);
    expect(calls()).toEqual([first]);
    expect(values.size).toBe(0);
  });

  it("gives images to the session before their message, once", async () => {
    vi.mocked(addImage).mockResolvedValue({ digest: "d1", media_type: "image/png", bytes: 1 });
    const { outbox, unreachable } = await load();
    vi.mocked(sendMessage).mockRejectedValueOnce(unreachable);
    outbox.post("ann", "ses_1", { ...text("look"), images: [{ bytes: new File(["x"], "x.png") }, { digest: "d0" }] });
    await vi.advanceTimersByTimeAsync(5000);
    expect(calls()).toHaveLength(2);
    expect(addImage).toHaveBeenCalledTimes(1);
    expect(vi.mocked(sendMessage).mock.lastCall?.[1].images).toEqual(["d1", "d0"]);
  });

  it("reads nothing from what others wrote into the storage", async () => {
    values.set("gantry.outbox.ann.ses_1", '[{"id":1},"x",null]');
    const { outbox } = await load();
    outbox.resume("ann", "ses_1");
    await vi.advanceTimersByTimeAsync(0);
    expect(calls()).toEqual([]);
  });
});
