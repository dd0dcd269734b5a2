/** The input of an operation, which is held until the server has taken it. */

/** Bytes that are held at most, which is what may be on its way to a runner. */
export const MOST_HELD = 1024 * 1024;

/** The most data of one message, in bytes. */
const MOST_DATA = 64 * 1024;

/** Input with offsets; it outlives connections. */
export class Input {
  /** The offset of the first byte that is held, and the one behind the last. */
  #base = 0;
  #end = 0;
  #held: Uint8Array[] = [];
  #isEnded = false;
  /** True once the server told where this input begins: behind what others wrote. */
  #isPlaced = false;
  /** The offset of the next byte to send on this connection; `null` until the server told it. */
  #next: number | null = null;
  #isEndSent = false;

  /** Holds bytes; false if there is no room for them, or the input has ended. */
  push(bytes: Uint8Array): boolean {
    if (this.#isEnded || this.#end - this.#base + bytes.length > MOST_HELD) return false;
    // A copy: its owner may write over it.
    if (bytes.length > 0) this.#held.push(bytes.slice());
    this.#end += bytes.length;
    return true;
  }

  /** Ends it behind what is held. */
  finish(): void {
    this.#isEnded = true;
  }

  /** A new connection begins: the server will tell where to go on. */
  connected(): void {
    this.#next = null;
    this.#isEndSent = false;
  }

  /** The server took all below this offset. False if the runner lost input that it had taken, which is gone. */
  taken(offset: number): boolean {
    if (!this.#isPlaced) {
      this.#isPlaced = true;
      this.#base = offset;
      this.#end += offset;
    }
    if (offset < this.#base) {
      this.#held = [];
      this.#base = this.#end = this.#next = offset;
      return false;
    }
    // Input of another page may lie below: what comes next stands behind it.
    let drop = offset - this.#base;
    while (drop > 0 && this.#held.length > 0) {
      const first = this.#held[0] as Uint8Array;
      if (drop < first.length) {
        this.#held[0] = first.subarray(drop);
        break;
      }
      drop -= first.length;
      this.#held.shift();
    }
    this.#base = offset;
    this.#end = Math.max(this.#end, offset);
    this.#next = Math.max(this.#next ?? offset, offset);
    return true;
  }

  /** The next piece to send, which counts as sent; `null` if there is none now. */
  next(): { readonly offset: number; readonly data: Uint8Array } | null {
    if (this.#next === null) return null;
    let skip = this.#next - this.#base;
    for (const piece of this.#held) {
      if (skip < piece.length) {
        const [offset, data] = [this.#next, piece.subarray(skip, skip + MOST_DATA)];
        this.#next += data.length;
        return { offset, data };
      }
      skip -= piece.length;
    }
    return null;
  }

  /** The whole size of the input, once: it ended, and all of it was sent. */
  endToSend(): number | null {
    if (!this.#isEnded || this.#isEndSent || this.#next !== this.#end) return null;
    this.#isEndSent = true;
    return this.#end;
  }
}
