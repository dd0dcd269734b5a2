/** A server on the other side of fake WebSockets: tickets, connections, and what was said on them. */

import { vi } from "vitest";

/** A WebSocket that a test holds the other end of. */
export class FakeSocket {
  static readonly OPEN = 1;
  readonly url: string;
  readonly said: unknown[] = [];
  readyState = 0;
  bufferedAmount = 0;
  binaryType = "blob";
  isClosed = false;
  onopen: (() => void) | null = null;
  onmessage: ((event: { data: unknown }) => void) | null = null;
  onclose: ((event: { code: number }) => void) | null = null;

  constructor(url: string) {
    this.url = url;
    sockets.push(this);
  }

  send(message: unknown): void {
    this.said.push(typeof message === "string" ? JSON.parse(message) : message);
  }

  close(): void {
    this.isClosed = true;
    this.readyState = 3;
  }

  /** The server accepts the connection. */
  accept(): this {
    this.readyState = 1;
    this.onopen?.();
    return this;
  }

  /** The server says this. */
  hears(message: unknown): this {
    this.onmessage?.({ data: message instanceof ArrayBuffer ? message : JSON.stringify(message) });
    return this;
  }

  /** The connection ends with this code (RFC 6455, 7.4); 1006 where it broke. */
  ends(code = 1006): void {
    this.readyState = 3;
    this.onclose?.({ code });
  }

  /** The messages that the page sent since this was asked last. */
  take(): unknown[] {
    return this.said.splice(0);
  }
}

let sockets: FakeSocket[] = [];

/** The answers to requests for tickets; the last one counts for all further ones. */
export interface FakeServer {
  /** The status of the next tickets. */
  status: number;
  /** The connections so far. */
  readonly sockets: FakeSocket[];
  /** The newest connection; waits until the page asked for another one than the number of those that are known. */
  next(): Promise<FakeSocket>;
  readonly tickets: unknown[];
}

/** Takes the place of the network, and of the clock. Random waits are as long as they may be. */
export function fakeServer(): FakeServer {
  vi.useFakeTimers({ now: 1_000_000 });
  vi.spyOn(Math, "random").mockReturnValue(1);
  sockets = [];
  let known = 0;
  const server: FakeServer = {
    status: 201,
    sockets,
    tickets: [],
    async next() {
      for (let turn = 0; turn < 20 && sockets.length === known; turn++) await Promise.resolve();
      if (sockets.length === known) throw new Error("the page has not connected");
      known = sockets.length;
      return sockets[known - 1] as FakeSocket;
    },
  };
  vi.stubGlobal("WebSocket", FakeSocket);
  vi.stubGlobal("fetch", (_: string, request: { body: string }) => {
    server.tickets.push(JSON.parse(request.body));
    if (server.status === 0) return Promise.reject(new TypeError("network"));
    const body = {
      ticket: `ticket${server.tickets.length}`,
      expires_at: "",
      status: server.status,
      code: "x",
      detail: "no",
    };
    return Promise.resolve({ ok: server.status < 300, status: server.status, json: () => Promise.resolve(body) });
  });
  return server;
}

/** Lets everything happen that waits for promises. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await Promise.resolve();
}

/** Gives the network and the clock back. */
export function realServer(): void {
  vi.useRealTimers();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
}
