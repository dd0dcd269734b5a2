/** Tar archives, as far as the files of a skill need them: plain files with their paths. */

const BLOCK = 512;
/** The place of each field of a header: where it begins, and how long it is. */
const NAME = [0, 100] as const;
const MODE = [100, 8] as const;
const SIZE = [124, 12] as const;
const TIME = [136, 12] as const;
const SUM = [148, 8] as const;
const TYPE = 156;
const MAGIC = [257, 8] as const;
const PREFIX = [345, 155] as const;

const FILE = "0";
/** The next file's name, which is longer than a header holds, in GNU's form and in that of POSIX. */
const LONG_NAME = "L";
const POSIX_HEAD = "x";

/** Most files of an archive that are looked at. */
const MOST_FILES = 1024;

/** Packs files, the same for the same files. A script, which begins with `#!`, can be run. */
export function pack(files: ReadonlyMap<string, Uint8Array>): Uint8Array {
  const parts: Uint8Array[] = [];
  for (const [path, content] of [...files].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const name = new TextEncoder().encode(path);
    if (name.length > NAME[1]) parts.push(...entry(LONG_NAME, new TextEncoder().encode("././@LongLink"), join([name, new Uint8Array(1)]), 0o644));
    const isScript = content[0] === 0x23 && content[1] === 0x21;
    parts.push(...entry(FILE, name.slice(0, NAME[1]), content, isScript ? 0o755 : 0o644));
  }
  return join([...parts, new Uint8Array(2 * BLOCK)]);
}

function entry(type: string, name: Uint8Array, content: Uint8Array, mode: number): Uint8Array[] {
  const header = new Uint8Array(BLOCK);
  const write = ([at, length]: readonly [number, number], text: string) => header.set(new TextEncoder().encode(text).slice(0, length), at);
  const octal = (value: number, digits: number) => value.toString(8).padStart(digits, "0");
  header.set(name, NAME[0]);
  write(MODE, octal(mode, 7));
  write(SIZE, octal(content.length, 11));
  write(TIME, octal(0, 11));
  write(MAGIC, "ustar  ");
  header[TYPE] = type.charCodeAt(0);
  // The sum counts its own field as spaces.
  write(SUM, " ".repeat(SUM[1]));
  write(SUM, `${octal(header.reduce((sum, byte) => sum + byte, 0), 6)}\0 `);
  return [header, content, new Uint8Array((BLOCK - (content.length % BLOCK)) % BLOCK)];
}

/** The files of an archive by their paths. Throws if it is none. */
export function unpack(archive: Uint8Array): Map<string, Uint8Array> {
  const files = new Map<string, Uint8Array>();
  let longName: string | undefined;
  for (let at = 0; at + BLOCK <= archive.length && files.size < MOST_FILES; ) {
    const header = archive.subarray(at, at + BLOCK);
    if (header.every((byte) => byte === 0)) break;
    const text = ([from, length]: readonly [number, number]) => untilNull(header.subarray(from, from + length));
    const size = Number.parseInt(text(SIZE).trim(), 8);
    if (!Number.isSafeInteger(size) || size < 0 || at + BLOCK + size > archive.length) throw new Error("this is no tar archive");
    const content = archive.subarray(at + BLOCK, at + BLOCK + size);
    const type = String.fromCharCode(header[TYPE] ?? 0);
    if (type === LONG_NAME) longName = untilNull(content);
    else if (type === POSIX_HEAD) longName = posixPath(content) ?? longName;
    else {
      const prefix = text(MAGIC).startsWith("ustar\0") || text(MAGIC) === "ustar" ? text(PREFIX) : "";
      if (type === FILE || type === "\0") files.set(longName ?? (prefix ? `${prefix}/${text(NAME)}` : text(NAME)), content);
      longName = undefined;
    }
    at += BLOCK * (1 + Math.ceil(size / BLOCK));
  }
  return files;
}

/** The path of records such as `21 path=some/name\n`. */
function posixPath(records: Uint8Array): string | undefined {
  return /^\d+ path=(.*)$/m.exec(new TextDecoder().decode(records))?.[1];
}

function untilNull(bytes: Uint8Array): string {
  const end = bytes.indexOf(0);
  return new TextDecoder().decode(end < 0 ? bytes : bytes.subarray(0, end));
}

/** The parts, one after the other. */
function join(parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
