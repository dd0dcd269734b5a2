/** What a person brings as an extension: a file, or a folder with a skill. */
import type { ExtensionKind } from "@/api/schema";
import { headOf } from "@/format/head";
import { pack, unpack } from "./tar";

/** The file with a skill's instructions. */
export const SKILL_FILE = "SKILL.md";
/** It keeps the folder out of a repository: on a runner it lies in the person's project. */
const GITIGNORE = ".gitignore";

/** Most files of a skill beside its instructions, their bytes, and the bytes of one file that is a whole extension. The server takes no more. */
const MOST_FILES = 256;
const MOST_BYTES = 2 * 1024 * 1024 - 64 * 1024;
const TEXT_BYTES = 64 * 1024;

/** Most bytes of an archive that is unpacked: it may hold more than the one skill. */
const MOST_UNPACKED = 16 * 1024 * 1024;

/** A reason why something cannot be taken. */
export type Unfit = "noSkillFile" | "tooManyFiles" | "tooLarge" | "noText";

/** An extension as its source has it. */
export interface Source {
  /** The name that the file gives it, or its folder or file; may be empty. */
  name: string;
  text: string;
  /** The other files of a skill's folder, by their paths. */
  files: ReadonlyMap<string, Uint8Array>;
  /** The path that it was read from. */
  source: string;
}

/** Reads a folder, or the one file, that a person chose. The paths of a folder's files begin with its name. */
export async function readSource(kind: ExtensionKind, chosen: readonly File[]): Promise<Source | Unfit> {
  const folder = chosen[0]?.webkitRelativePath.split("/")[0] ?? "";
  const files = new Map<string, File>();
  for (const file of chosen) {
    const path = folder ? file.webkitRelativePath.slice(folder.length + 1) : file.name;
    // A repository's own files are no part of a skill.
    if (!path.split("/").some((part) => part.startsWith(".git"))) files.set(path, file);
  }
  const first = kind === "skill" && folder ? files.get(SKILL_FILE) : chosen[0];
  if (!first) return "noSkillFile";
  files.delete(folder ? SKILL_FILE : first.name);
  if (first.size > TEXT_BYTES) return "tooLarge";
  if (files.size > MOST_FILES) return "tooManyFiles";
  if ([...files.values()].reduce((sum, file) => sum + file.size, 0) > MOST_BYTES) return "tooLarge";
  const text = textOf(new Uint8Array(await first.arrayBuffer()));
  if (text === undefined) return "noText";
  const contents = await Promise.all([...files].map(async ([path, file]) => [path, new Uint8Array(await file.arrayBuffer())] as const));
  const stem = first.name.replace(/\.[^.]*$/, "");
  return { name: headOf(text, "name") ?? (folder || (kind === "skill" ? "" : stem)), text, files: new Map(contents), source: folder || first.name };
}

/** Reads what an address of the web gave: a `SKILL.md`, or a `.tar.gz` with a folder that has one. */
export async function readDownload(bytes: Uint8Array, address: string): Promise<Source | Unfit> {
  const isPacked = bytes[0] === 0x1f && bytes[1] === 0x8b;
  const archive = isPacked ? await gunzipped(bytes) : undefined;
  if (isPacked && archive === undefined) return "tooLarge";
  const files = archive ? belowOneFolder(filesOf(archive)) : new Map([[SKILL_FILE, bytes]]);
  const first = files.get(SKILL_FILE);
  if (!first) return "noSkillFile";
  files.delete(SKILL_FILE);
  if (first.length > TEXT_BYTES) return "tooLarge";
  if (files.size > MOST_FILES) return "tooManyFiles";
  if ([...files.values()].reduce((sum, file) => sum + file.length, 0) > MOST_BYTES) return "tooLarge";
  const text = textOf(first);
  if (text === undefined || [...files.keys()].some((path) => !isInside(path))) return "noText";
  return { name: headOf(text, "name") ?? "", text, files, source: address };
}

/** The files of the folder with the skill, relative to it; of several folders the one with the shortest path. */
function belowOneFolder(files: ReadonlyMap<string, Uint8Array>): Map<string, Uint8Array> {
  const skills = [...files.keys()].filter((path) => path === SKILL_FILE || path.endsWith(`/${SKILL_FILE}`));
  const folder = skills.toSorted((a, b) => a.length - b.length)[0]?.slice(0, -SKILL_FILE.length) ?? "";
  return new Map([...files].filter(([path]) => path.startsWith(folder)).map(([path, content]) => [path.slice(folder.length), content]));
}

function isInside(path: string): boolean {
  return !/\p{Cc}/u.test(path) && path.split("/").every((part) => part !== "" && part !== "." && part !== "..");
}

function filesOf(archive: Uint8Array): ReadonlyMap<string, Uint8Array> {
  try {
    return new Map([...unpack(archive)].map(([path, content]) => [path.replace(/^(\.\/)+/, ""), content]));
  } catch {
    return new Map();
  }
}

/** The bytes of a gzip; undefined for more than an archive of a skill may have, or a damaged one. */
async function gunzipped(bytes: Uint8Array): Promise<Uint8Array | undefined> {
  const reader = new Blob([bytes.slice()]).stream().pipeThrough(new DecompressionStream("gzip")).getReader();
  const parts: Uint8Array[] = [];
  let length = 0;
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      length += next.value.length;
      if (length > MOST_UNPACKED) {
        void reader.cancel();
        return undefined;
      }
      parts.push(next.value);
    }
  } catch {
    return undefined;
  }
  const whole = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/** The other files as the server takes them, in Base64; undefined for none. */
export function packed(files: ReadonlyMap<string, Uint8Array>): string | undefined {
  if (files.size === 0) return undefined;
  return toBase64(pack(files.has(GITIGNORE) ? files : new Map([...files, [GITIGNORE, new TextEncoder().encode("*\n")]])));
}

/** The other files of a registered skill; none if it has none or they cannot be read. */
export function unpacked(archive: string | null | undefined): ReadonlyMap<string, Uint8Array> {
  if (!archive) return new Map();
  try {
    const files = unpack(Uint8Array.from(atob(archive), (letter) => letter.charCodeAt(0)));
    files.delete(GITIGNORE);
    return files;
  } catch {
    return new Map();
  }
}

/** The text of a file; undefined if it is none. */
export function textOf(bytes: Uint8Array): string | undefined {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    return text.includes("\0") ? undefined : text;
  } catch {
    return undefined;
  }
}

function toBase64(bytes: Uint8Array): string {
  let letters = "";
  for (let at = 0; at < bytes.length; at += 0x8000) letters += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  return btoa(letters);
}
