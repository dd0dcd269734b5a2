/** The completion of commands behind `/`, and of the runner's files and the tool servers' resources behind `@`. The terminal client has the same rules. */
import type { Command, Extension, ListedEntry, SessionToolServer, Skill } from "@/api/schema";
import { headOf } from "@/format/head";
import { line, whole } from "@/transcript/safe";

/** The part of a text that can be completed. */
export interface Word {
  kind: "command" | "file";
  /** Where it begins, with its `/` or `@`. It ends at the cursor. */
  start: number;
  /** What was typed behind the sign. */
  prefix: string;
}

/** Something that the word can become. */
export interface Completion {
  /** What the list shows. */
  name: string;
  /** What takes the word's place. */
  insert: string;
  /** A command's arguments. */
  arguments?: string;
  /** A command's effect, or a resource's name. */
  summary?: string;
  /** True for a command that needs no arguments: Enter sends it. */
  whole: boolean;
  folder: boolean;
}

/** The longest beginning of a name that is completed, in UTF-16 units. */
const PREFIX_LENGTH = 1024;
/** Most entries of a list. */
const AT_MOST = 50;

/** The word before the cursor that can be completed. */
export function wordAt(text: string, cursor: number): Word | undefined {
  const before = text.slice(0, cursor);
  const word = /^\/\S*$/.test(before) ? ({ kind: "command", start: 0, prefix: before.slice(1) } as const) : fileWord(before);
  return word && word.prefix.length <= PREFIX_LENGTH ? word : undefined;
}

function fileWord(before: string): Word | undefined {
  const line = before.slice(before.lastIndexOf("\n") + 1);
  // A name with spaces stands in quotes.
  const found = /(?:^|\s)(@"([^"]*))$/.exec(line) ?? /(?:^|\s)(@(\S*))$/.exec(line);
  if (!found?.[1]) return undefined;
  return { kind: "file", start: before.length - found[1].length, prefix: found[2] ?? "" };
}

/** True if the letters that were typed are in the name, in their order. */
export function isLike(name: string, typed: string): boolean {
  let from = 0;
  const lower = name.toLowerCase();
  for (const letter of typed.toLowerCase()) {
    from = lower.indexOf(letter, from) + 1;
    if (from === 0) return false;
  }
  return true;
}

/** The commands that fit: the command itself first, then those that begin so, then those that are like it. */
export function commandsLike(commands: readonly Command[], typed: string): Completion[] {
  const lower = typed.toLowerCase();
  const rank = (name: string) => (name === lower ? 0 : name.startsWith(lower) ? 1 : 2);
  return commands
    .filter((command) => isLike(command.name, lower))
    .sort((a, b) => rank(a.name) - rank(b.name))
    .slice(0, AT_MOST)
    .map((command) => ({
      name: `/${command.name}`,
      insert: `/${command.name}${command.arguments ? " " : ""}`,
      arguments: command.arguments,
      summary: command.summary,
      whole: command.arguments === "" || command.arguments.startsWith("["),
      folder: false,
    }));
}

/** The skills as commands: those that are registered, and those that the last turn found, which stand before them. A command goes before a skill of its name. */
export function skillCommands(commands: readonly Command[], registered: readonly Extension[], found: readonly Skill[]): Command[] {
  const skills = new Map<string, string>();
  for (const { kind, name, text } of registered) {
    if (kind === "skill") skills.set(headOf(text, "name") ?? name, headOf(text, "description") ?? "");
  }
  for (const { name, description } of found) skills.set(name, description);
  for (const { name } of commands) skills.delete(name);
  return [...skills].map(([name, summary]) => ({ name, arguments: "[WORDS]", summary, between_turns: false }));
}

/** The prompts of tool servers as commands. A command or a skill goes before a prompt of its name. */
export function promptCommands(known: readonly Command[], servers: readonly SessionToolServer[]): Command[] {
  const names = new Set(known.map(({ name }) => name));
  const prompts = new Map(servers.flatMap(({ prompts }) => prompts.map((prompt) => [prompt.command, prompt])));
  return [...prompts.values()]
    .filter(({ command }) => isWord(command) && !names.has(command))
    .map(({ command, arguments: hint, description }) => ({ name: command, arguments: line(hint), summary: line(description), between_turns: false }));
}

/** The resources of tool servers that have the letters in their address or name, those whose address begins so first. */
export function resourcesLike(servers: readonly SessionToolServer[], prefix: string): Completion[] {
  const letters = prefix.toLowerCase();
  const begins = (address: string) => address.toLowerCase().startsWith(letters);
  const resources = new Map(servers.flatMap(({ resources }) => resources.map(({ mention, name }) => [mention.slice(1), name])));
  return [...resources]
    .filter(([address, name]) => isWord(address) && (address.toLowerCase().includes(letters) || name.toLowerCase().includes(letters)))
    .sort(([a], [b]) => Number(begins(b)) - Number(begins(a)))
    .slice(0, AT_MOST)
    .map(([address, name]) => ({ name: address, insert: `@${address} `, summary: line(name), whole: false, folder: false }));
}

/** True if a name of a stranger can stand in a text as one word, with each letter to be seen. */
function isWord(name: string): boolean {
  return name.length <= PREFIX_LENGTH && !/\s/.test(name) && whole(name) === name;
}

/** The folder of a path that is typed, without its last slash, and the beginning of a name in it. */
export function splitPath(prefix: string): { folder: string; name: string } {
  const slash = prefix.lastIndexOf("/");
  return { folder: slash < 0 ? "" : prefix.slice(0, slash), name: prefix.slice(slash + 1) };
}

/** The entries of a folder that fit the path that is typed, those that begin so first. Hidden ones are for those who type the dot. */
export function filesLike(entries: readonly ListedEntry[], prefix: string): Completion[] {
  const { folder, name } = splitPath(prefix);
  const letters = name.toLowerCase();
  const begins = (entry: ListedEntry) => entry.name.toLowerCase().startsWith(letters);
  return entries
    .filter((entry) => !entry.is_replaced && entry.name.toLowerCase().includes(letters) && (letters.startsWith(".") || !entry.name.startsWith(".")))
    .sort((a, b) => Number(begins(b)) - Number(begins(a)) || a.name.localeCompare(b.name))
    .slice(0, AT_MOST)
    .flatMap((entry) => fileCompletion(`${folder && `${folder}/`}${entry.name}`, entry.kind === "directory"));
}

function fileCompletion(path: string, folder: boolean): Completion[] {
  const name = folder ? `${path}/` : path;
  const spaced = /\s/.test(name);
  // A text could not hold these as they are.
  if (/\p{Cc}/u.test(name) || (spaced && name.includes('"'))) return [];
  const closed = folder ? "" : `${spaced ? '"' : ""} `;
  return [{ name, insert: `@${spaced ? '"' : ""}${name}${closed}`, whole: false, folder }];
}
