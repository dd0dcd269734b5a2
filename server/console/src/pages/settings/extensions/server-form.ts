/** The form of a tool server: an address, or a program of the runner, with headers or variables. */
import type { Extension } from "@/api/schema";


/** A header or a variable of the environment. */
export interface Pair {
  name: string;
  value: string;
  /** True if the server has a value, which stays where no other one is typed. */
  stored?: boolean;
}

/** Stands for a value that the server has and does not tell. */
const HIDDEN = "(hidden)";

/** What a person has typed about a tool server. */
export interface ServerForm {
  name: string;
  way: "http" | "stdio";
  url: string;
  /** The program and its arguments, as in a shell. */
  command: string;
  /** Headers of an address, or variables of a program. The server tells no value again. */
  pairs: readonly Pair[];
}

/** Most headers or variables. */
export const MOST_PAIRS = 32;

/** True if a tool server can have this name. */
export function isServerName(name: string): boolean {
  return /^[A-Za-z0-9_-]{1,32}$/.test(name);
}

/** True if the name of a header or a variable can be sent. */
export function isPairName(way: ServerForm["way"], name: string): boolean {
  return way === "http" ? /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/.test(name) : /^[A-Za-z_][A-Za-z0-9_]{0,127}$/.test(name);
}

/** The words of a command as a shell splits them; undefined where a quote is not closed. */
export function wordsOf(command: string): string[] | undefined {
  const words: string[] = [];
  let word: string | undefined;
  let quote = "";
  for (let at = 0; at < command.length; at++) {
    const letter = command[at] ?? "";
    if (quote === "'" ? letter === "'" : quote === '"' && letter === '"') quote = "";
    else if (quote === "" && (letter === "'" || letter === '"')) [quote, word] = [letter, word ?? ""];
    else if (quote !== "'" && letter === "\\" && at + 1 < command.length) word = (word ?? "") + (command[++at] ?? "");
    else if (quote === "" && /\s/.test(letter)) {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else word = (word ?? "") + letter;
  }
  if (quote !== "") return undefined;
  return word === undefined ? words : [...words, word];
}

/** The text of `.mcp.json` that declares it. */
export function textOfServer({ name, way, url, command, pairs }: ServerForm): string {
  const named = Object.fromEntries(pairs.filter((pair) => pair.name !== "").map((pair) => [pair.name.trim(), pair.value === "" && pair.stored ? HIDDEN : pair.value]));
  const [program = "", ...args] = wordsOf(command) ?? [];
  const server = way === "http" ? { type: "http", url: url.trim(), headers: named } : { command: program, args, env: named };
  return JSON.stringify({ mcpServers: { [name.trim()]: server } });
}

/** The form for a new server, or for one that is registered. The server tells no values but references such as `${NAME}`. */
export function formOf(extension: Extension | undefined): ServerForm {
  const empty: ServerForm = { name: extension?.name ?? "", way: "http", url: "", command: "", pairs: [] };
  if (extension?.kind !== "mcp") return empty;
  const server = declared(extension);
  const values = server?.["headers"] ?? server?.["env"] ?? {};
  const pairs = Object.entries(values).map(([name, value]): Pair => (typeof value === "string" && value !== HIDDEN ? { name, value } : { name, value: "", stored: true }));
  if (typeof server?.["url"] === "string") return { ...empty, url: server["url"], pairs };
  const words = [server?.["command"], ...(Array.isArray(server?.["args"]) ? server["args"] : [])];
  return { ...empty, way: "stdio", command: words.filter((word) => typeof word === "string").map(quoted).join(" "), pairs };
}

function declared(extension: Extension): Record<string, unknown> | undefined {
  try {
    const { mcpServers } = JSON.parse(extension.text) as { mcpServers?: Record<string, Record<string, unknown>> };
    return mcpServers?.[extension.name];
  } catch {
    return undefined;
  }
}

/** A word as a shell reads it back. */
function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
