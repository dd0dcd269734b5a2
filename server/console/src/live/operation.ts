/**
 * The WebSocket of one operation: its output as it comes, its input, its terminal's size, and signals.
 *
 * Each byte of output is handed over once and in order. Each byte of input is held until the server took it.
 *
 * A page cannot pause a WebSocket. So once 4 MiB of output wait for the terminal, the connection is closed, and made
 * again from the same offsets when less than 256 KiB wait. The server stores the output, so nothing is lost, and 50 MB
 * of it never lie in the tab's memory. What is typed in the meantime is held and sent then.
 */

import type {
  Operation,
  OperationClientMessage,
  OperationId,
  OperationServerMessage,
  Problem,
  Signal,
} from "@/api/schema";
import { decode, encodeInput, type Piece } from "./frame";
import { Input } from "./input";
import { Link, type LinkState } from "./link";

/** Output that may wait for the consumer before the connection is closed, in bytes. */
const MOST_WAITING = 4 * 1024 * 1024;

/** Waiting output below which the connection is made again, in bytes. */
const LITTLE_WAITING = 256 * 1024;

/** Input that the browser may hold before more of it is sent, in bytes. */
const MOST_BUFFERED = 256 * 1024;

/** The silence after which a change of the network or the page is a reason to connect again, in milliseconds. */
const SILENT_MS = 60_000;

/** The state of an operation as its page sees it. */
export interface OperationView {
  /** The connection. It is `connecting` while output waits to be written: see the top of this file. */
  readonly link: LinkState;
  /** The operation as of the last connection; `null` before the first. */
  readonly operation: Operation | null;
  /** The time since when its runner is unreachable (RFC 3339); `null` while it is reachable. */
  readonly unreachableSince: string | null;
  /** True if its runner lost input that was typed. */
  readonly inputLost: boolean;
  /** The last refusal of something that was asked, such as a signal; `null` if there is none. */
  readonly problem: Problem | null;
}

/** The end of a connection for good. */
export type OperationEnded =
  | { readonly why: "ended"; readonly operation: Operation }
  /** The server does not let the page follow it. */
  | { readonly why: "refused"; readonly problem: Problem }
  | { readonly why: "signed_out" };

/** What a page wants of an operation. */
export interface OperationOptions {
  readonly id: OperationId;
  /** The offsets from which output is wanted. */
  readonly from: { readonly stdout: number; readonly stderr: number };
  /** Takes output. `done` says that it was written to the screen; without it no more output comes after 4 MiB. */
  onOutput(piece: Piece, done: () => void): void;
  /** Output that is not stored any more. */
  onGap(gap: { readonly stream: "stdout" | "stderr"; readonly from: number; readonly to: number }): void;
  onState(view: OperationView): void;
  onEnd(end: OperationEnded): void;
}

/** An open operation. */
export interface OpenOperation {
  /** Sends input; false if more than 1 MiB waits already, or the input has ended: nothing of it was taken. */
  write(bytes: Uint8Array): boolean;
  /** Tells the size of the terminal. With `redraw` the program gets another size first, so that it draws all again. */
  resize(rows: number, columns: number, redraw?: boolean): void;
  /** Sends a signal; false if there is no connection: it was not sent. */
  signal(signal: Signal): boolean;
  endInput(): void;
  /** Says that output below this offset is safe here: the server keeps that of a download until then. */
  taken(offset: number): void;
  /** Lets go of the operation, which goes on. */
  close(): void;
}

/** Follows an operation until it ends or is closed. */
export function openOperation(options: OperationOptions): OpenOperation {
  const socket = new OperationSocket(options);
  return {
    write: (bytes) => socket.write(bytes),
    resize: (rows, columns, redraw = false) => socket.resize(rows, columns, redraw),
    signal: (signal) => socket.say({ type: "signal", signal }),
    endInput: () => socket.endInput(),
    taken: (offset) => void socket.say({ type: "taken", stream: "stdout", offset }),
    close: () => socket.close(),
  };
}

class OperationSocket {
  readonly #have: { stdout: number; stderr: number };
  readonly #input = new Input();
  readonly #link: Link;
  #size: { readonly rows: number; readonly columns: number; redraw: boolean } | null = null;
  #view: OperationView = {
    link: { state: "idle" },
    operation: null,
    unreachableSince: null,
    inputLost: false,
    problem: null,
  };
  #waiting = 0;
  #isPaused = false;
  #isOver = false;
  #isClosed = false;
  /** True while typed input has no answer, so that a program that reads nothing costs one new connection. */
  #isUnanswered = false;
  #pump: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly options: OperationOptions) {
    this.#have = { ...options.from };
    const path = `/api/v1/operations/${encodeURIComponent(options.id)}/stream`;
    this.#link = new Link({
      ticket: { operation: options.id },
      path,
      query: () => ({ stdout: String(this.#have.stdout), stderr: String(this.#have.stderr) }),
      opened: () => this.#opened(),
      text: (message) => this.#hear(message as OperationServerMessage),
      bytes: (message) => this.#output(message),
      changed: (link) => this.#become({ link }),
      signedOut: () => this.#end({ why: "signed_out" }),
      refused: (problem) => this.#end({ why: "refused", problem }),
      isOver: () => this.#isOver,
      probe: (why) => this.#probe(why),
    });
    this.#link.start();
  }

  write(bytes: Uint8Array): boolean {
    const fits = this.#input.push(bytes);
    this.#send();
    if (!this.#isUnanswered && this.#view.unreachableSince === null) {
      this.#isUnanswered = true;
      this.#link.expectAnswer();
    }
    return fits;
  }

  endInput(): void {
    this.#input.finish();
    this.#send();
  }

  resize(rows: number, columns: number, redraw: boolean): void {
    const size = (of: number) => Math.min(65535, Math.max(1, Math.floor(of)));
    // A redraw that was not sent yet is still wanted.
    this.#size = { rows: size(rows), columns: size(columns), redraw: redraw || this.#size?.redraw === true };
    this.#sendSize();
  }

  say(message: OperationClientMessage): boolean {
    return this.#link.send(JSON.stringify(message));
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#pump);
    this.#link.stop();
  }

  #opened(): void {
    this.#input.connected();
    this.#sendSize();
  }

  #hear(message: OperationServerMessage): void {
    switch (message.type) {
      case "operation":
        return this.#become({ operation: message.operation, unreachableSince: null });
      case "accepted":
        return;
      case "gap": {
        const have = this.#have[message.stream];
        if (message.to <= have) return;
        this.#have[message.stream] = message.to;
        return this.options.onGap({ stream: message.stream, from: Math.max(have, message.from), to: message.to });
      }
      case "unreachable":
        return this.#become({ unreachableSince: message.since });
      case "reachable":
        return this.#become({ unreachableSince: null });
      case "input_taken":
        this.#isUnanswered = false;
        if (!this.#input.taken(message.offset)) this.#become({ inputLost: true });
        return this.#send();
      case "ended":
        this.#isOver = true;
        this.#become({ operation: message.operation });
        return this.#end({ why: "ended", operation: message.operation });
      case "problem":
        return this.#become({ problem: message.problem });
      case "reconnect":
        return this.#link.reconnect(message.within_ms);
    }
  }

  /** Without typing there is nothing that the server answers: where it may be dead, it is connected again. */
  #probe(why: "silence" | "event"): boolean {
    if (why === "event" && Date.now() - (this.#link.heardAt ?? 0) > SILENT_MS) {
      this.#link.reconnect(0);
      this.#link.fail();
    }
    return false;
  }

  #output(message: ArrayBuffer): void {
    const piece = decode(message);
    if (!piece) return;
    const have = this.#have[piece.stream];
    // Missing output comes with the next connection.
    if (piece.offset > have) return this.#link.fail();
    const data = piece.data.subarray(have - piece.offset);
    if (data.length === 0) return;
    this.#have[piece.stream] = have + data.length;
    this.#waiting += data.length;
    let isDone = false;
    this.options.onOutput({ stream: piece.stream, offset: have, data }, () => {
      if (isDone) return;
      isDone = true;
      this.#waiting -= data.length;
      this.#resume();
    });
    if (this.#waiting > MOST_WAITING && !this.#isPaused) {
      this.#isPaused = true;
      this.#link.pause();
    }
  }

  #resume(): void {
    if (!this.#isPaused || this.#isClosed || this.#waiting > LITTLE_WAITING) return;
    this.#isPaused = false;
    this.#link.resume();
  }

  #send(): void {
    clearTimeout(this.#pump);
    while (this.#link.buffered < MOST_BUFFERED) {
      const piece = this.#input.next();
      if (!piece) {
        const end = this.#input.endToSend();
        if (end !== null) this.say({ type: "input_end", offset: end });
        return;
      }
      this.#link.send(encodeInput(piece.offset, piece.data));
    }
    this.#pump = setTimeout(() => this.#send(), 20);
  }

  #sendSize(): void {
    const size = this.#size;
    if (!size) return;
    const { columns } = size;
    // A program draws again only where the size is another one.
    const isOther = size.redraw && size.rows > 1;
    if (isOther && this.say({ type: "resize", rows: size.rows - 1, columns })) size.redraw = false;
    this.say({ type: "resize", rows: size.rows, columns });
  }

  #become(change: Partial<OperationView>): void {
    this.#view = { ...this.#view, ...change };
    if (!this.#isClosed) this.options.onState(this.#view);
  }

  #end(end: OperationEnded): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    clearTimeout(this.#pump);
    this.#link.stop();
    this.options.onEnd(end);
  }
}
