/** Binary messages of an operation's WebSocket: a channel, the offset of the first byte (big-endian), and the bytes. */

/** The bytes before the data. */
const HEAD = 9;

/** A piece of output. */
export interface Piece {
  readonly stream: "stdout" | "stderr";
  readonly offset: number;
  readonly data: Uint8Array<ArrayBuffer>;
}

/** The piece of output in a message; `null` if it is none. Its bytes share the memory of the message. */
export function decode(message: ArrayBuffer): Piece | null {
  if (message.byteLength < HEAD) return null;
  const view = new DataView(message);
  const channel = view.getUint8(0);
  const offset = Number(view.getBigUint64(1));
  if ((channel !== 1 && channel !== 2) || !Number.isSafeInteger(offset)) return null;
  return { stream: channel === 1 ? "stdout" : "stderr", offset, data: new Uint8Array(message, HEAD) };
}

/** The message for a piece of input. */
export function encodeInput(offset: number, data: Uint8Array): Uint8Array<ArrayBuffer> {
  const message = new Uint8Array(HEAD + data.length);
  new DataView(message.buffer).setBigUint64(1, BigInt(offset));
  message.set(data, HEAD);
  return message;
}
