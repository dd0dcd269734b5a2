// @vitest-environment happy-dom
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type OpenOperation, openOperation, type OperationEnded, type OperationView } from "./operation";
import { type FakeServer, type FakeSocket, fakeServer, realServer, settle } from "./testing/server";

let server: FakeServer;
let open: OpenOperation;
let written: string;
let waiting: (() => void)[];
let view: OperationView | null;
let end: OperationEnded | null;
let gaps: unknown[];

beforeEach(() => {
  server = fakeServer();
  [written, waiting, view, end, gaps] = ["", [], null, null, []];
  open = openOperation({
    id: "op_1",
    from: { stdout: 3, stderr: 0 },
    onOutput: ({ data }, done) => {
      written += data.length > 1000 ? "#" : new TextDecoder().decode(data);
      waiting.push(done);
    },
    onGap: (gap) => gaps.push(gap),
    onState: (state) => (view = state),
    onEnd: (ended) => (end = ended),
  });
});

afterEach(() => {
  open.close();
  realServer();
});

function frame(channel: number, offset: number, data: string | number): ArrayBuffer {
  const bytes = typeof data === "number" ? new Uint8Array(data) : new TextEncoder().encode(data);
  const message = new Uint8Array(9 + bytes.length);
  message[0] = channel;
  new DataView(message.buffer).setBigUint64(1, BigInt(offset));
  message.set(bytes, 9);
  return message.buffer;
}

/** The input in what the page said, as "offset:text"; other messages as they are. */
function said(socket: FakeSocket): unknown[] {
  return socket.take().map((message) => {
    if (!(message instanceof Uint8Array)) return message;
    const offset = new DataView(message.buffer).getBigUint64(1);
    return `${message[0]}@${offset}:${new TextDecoder().decode(message.slice(9))}`;
  });
}

const bytes = (text: string) => new TextEncoder().encode(text);
const operation = { type: "operation", operation: { id: "op_1" } };

describe("an operation", () => {
  it("hands over each byte of output once, and resumes by its offsets", async () => {
    const first = (await server.next()).accept().hears(operation);
    expect([server.tickets[0], first.url]).toEqual([
      { operation: "op_1" },
      expect.stringContaining("/api/v1/operations/op_1/stream?stdout=3&stderr=0&ticket="),
    ]);
    first
      .hears(frame(1, 0, "abcde"))
      .hears(frame(2, 0, "!"))
      .hears(frame(1, 3, "def"));
    expect(written).toBe("de!f");
    // A jump without a word: the missing bytes come with the next connection.
    first.hears(frame(1, 9, "j"));
    expect(first.isClosed).toBe(true);
    vi.advanceTimersByTime(1000);
    const second = (await server.next()).accept();
    expect(second.url).toContain("stdout=6&stderr=1");
    second.hears({ type: "gap", stream: "stdout", from: 2, to: 8 }).hears(frame(1, 8, "ij"));
    expect([written, gaps]).toEqual(["de!fij", [{ stream: "stdout", from: 6, to: 8 }]]);
  });

  it("holds input until it is taken, and sends it again after a loss", async () => {
    open.write(bytes("ls"));
    const first = (await server.next()).accept().hears(operation);
    expect(said(first)).toEqual([]);
    // Another page has written 10 bytes before.
    first.hears({ type: "input_taken", offset: 10 });
    open.write(bytes(" -l\n"));
    expect(said(first)).toEqual(["0@10:ls", "0@12: -l\n"]);
    first.hears({ type: "input_taken", offset: 13 }).ends();
    open.write(bytes("q"));
    vi.advanceTimersByTime(1000);
    const second = (await server.next()).accept().hears(operation);
    second.hears({ type: "input_taken", offset: 13 });
    open.endInput();
    expect(said(second)).toEqual(["0@13:-l\n", "0@16:q", { type: "input_end", offset: 17 }]);
    expect(open.write(bytes("x"))).toBe(false);
  });

  it("says that input is lost that a runner had taken, and goes on from there", async () => {
    const first = (await server.next()).accept().hears(operation).hears({ type: "input_taken", offset: 0 });
    open.write(bytes("abc"));
    first.hears({ type: "input_taken", offset: 3 }).hears({ type: "input_taken", offset: 1 });
    open.write(bytes("d"));
    expect([said(first), view?.inputLost]).toEqual([["0@0:abc", "0@1:d"], true]);
  });

  it("takes at most 1 MiB of input that waits", () => {
    expect([open.write(new Uint8Array(1024 * 1024)), open.write(bytes("x"))]).toEqual([true, false]);
  });

  it("tells the size after each connection, and another one first where all is to be drawn again", async () => {
    open.resize(24, 80, true);
    const first = (await server.next()).accept();
    expect(said(first)).toEqual([
      { type: "resize", rows: 23, columns: 80 },
      { type: "resize", rows: 24, columns: 80 },
    ]);
    first.ends();
    expect(open.signal("interrupt")).toBe(false);
    vi.advanceTimersByTime(1000);
    const second = (await server.next()).accept();
    expect([said(second), open.signal("interrupt"), said(second)]).toEqual([
      [{ type: "resize", rows: 24, columns: 80 }],
      true,
      [{ type: "signal", signal: "interrupt" }],
    ]);
  });

  it("lets go of the connection while 4 MiB wait for the screen, and goes on from there", async () => {
    let socket = (await server.next()).accept().hears(operation);
    let [offset, most, connections] = [3, 0, 1];
    const size = 50 * 1024 * 1024;
    while (offset < size) {
      while (offset < size && !socket.isClosed) {
        socket.hears(frame(1, offset, 65536));
        offset += 65536;
        most = Math.max(most, waiting.length * 65536);
      }
      waiting.splice(0).forEach((done) => done());
      await settle();
      if (!socket.isClosed) continue;
      socket = (await server.next()).accept().hears(operation);
      expect(socket.url).toContain(`stdout=${offset}&`);
      connections++;
    }
    expect(written.length).toBe(Math.ceil((size - 3) / 65536));
    expect(most).toBeLessThan(5 * 1024 * 1024);
    expect(connections).toBeGreaterThan(5);
    expect(view?.link.state).not.toBe("lost");
  });

  it("is over after its end, and after a refusal", async () => {
    const first = (await server.next()).accept().hears(operation);
    first.hears({ type: "ended", operation: { id: "op_1", state: "ended" } });
    first.ends(1000);
    expect(end).toMatchObject({ why: "ended" });
    vi.advanceTimersByTime(60_000);
    await settle();
    expect(server.tickets.length).toBe(1);
  });

  it("that a person may not follow any more is refused with the reason", async () => {
    const first = (await server.next()).accept();
    server.status = 404;
    first.ends(1008);
    vi.advanceTimersByTime(1000);
    await settle();
    expect(end).toMatchObject({ why: "refused", problem: { status: 404 } });
  });

  it("is connected again where typing has no answer", async () => {
    const first = (await server.next()).accept().hears(operation).hears({ type: "input_taken", offset: 0 });
    open.write(bytes("a"));
    vi.advanceTimersByTime(8_000);
    expect(first.isClosed).toBe(true);
    vi.advanceTimersByTime(250);
    const second = (await server.next()).accept().hears(operation).hears({ type: "input_taken", offset: 0 });
    expect(said(second)).toEqual(["0@0:a"]);
  });
});
