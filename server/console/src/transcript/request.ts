/** The arguments of a tool call, parsed once, for display. */

import { line, text, whole, wholeCharacters } from "./safe";

/** The thing that a call asks for. Commands, paths and patterns show each of their letters. */
export type Request =
  | { readonly kind: "shell"; readonly command: string; readonly directory: string; readonly background: boolean }
  /** `first` is the first line, where not all of the file is wanted. */
  | { readonly kind: "read"; readonly path: string; readonly first: number | null }
  /** The content of a file, and the texts of an edit, are their first 256 Ki characters. */
  | { readonly kind: "write"; readonly path: string; readonly content: string }
  | {
      readonly kind: "edit";
      readonly path: string;
      readonly old: string;
      readonly new: string;
      readonly every: boolean;
    }
  | { readonly kind: "list"; readonly path: string }
  | { readonly kind: "glob"; readonly pattern: string; readonly path: string }
  | { readonly kind: "grep"; readonly pattern: string; readonly path: string; readonly files: string }
  | { readonly kind: "fetch"; readonly url: string }
  | { readonly kind: "search"; readonly query: string }
  | { readonly kind: "todo" }
  /** Something of a background command; `task` is absent for all of them. */
  | { readonly kind: "task"; readonly task: number | null }
  /** A task for an agent; its role is empty for the general one. */
  | { readonly kind: "agent"; readonly task: string; readonly role: string; readonly prompt: string }
  | { readonly kind: "ask"; readonly question: string; readonly choices: readonly string[] }
  | { readonly kind: "plan"; readonly plan: string }
  /**
   * Another tool, or arguments without the expected form. `about` is the argument that tells one call from another;
   * `fields` are all of them, with values that are no text as JSON, and empty if the arguments are no JSON object.
   */
  | { readonly kind: "other"; readonly about: string; readonly fields: readonly Field[] };

/** An argument of a tool. */
export interface Field {
  readonly name: string;
  readonly text: string;
}

/** The longest text of unknown arguments that is shown, in UTF-16 units. */
const MOST_OTHER = 2000;

/** The most arguments of another tool that are shown. */
const MOST_FIELDS = 32;

/** The longest content of a file that is kept, in UTF-16 units. */
const MOST_CONTENT = 256 * 1024;

/** The most choices of a question. */
const MOST_CHOICES = 20;

/** The names that models give the tools beside the tools' own, as the server understands them. */
const KINDS: Readonly<Record<string, Request["kind"]>> = {
  shell: "shell",
  bash: "shell",
  sh: "shell",
  run: "shell",
  run_command: "shell",
  execute_command: "shell",
  terminal: "shell",
  read: "read",
  read_file: "read",
  cat: "read",
  view: "read",
  write: "write",
  write_file: "write",
  create_file: "write",
  edit: "edit",
  edit_file: "edit",
  str_replace: "edit",
  replace: "edit",
  list: "list",
  list_files: "list",
  list_directory: "list",
  ls: "list",
  glob: "glob",
  find: "glob",
  find_files: "glob",
  grep: "grep",
  search: "grep",
  search_files: "grep",
  web_fetch: "fetch",
  webfetch: "fetch",
  web_search: "search",
  websearch: "search",
  todo_write: "todo",
  todo_list: "todo",
  task_read: "task",
  task_status: "task",
  task_kill: "task",
  subagent: "agent",
  agent: "agent",
  task: "agent",
  ask_user: "ask",
  askuser: "ask",
  askuserquestion: "ask",
  present_plan: "plan",
  exitplanmode: "plan",
};

/** The request of a call, by the name of its tool and its arguments, which are meant to be JSON. */
export function requestOf(tool: string, written: string): Request {
  const has = Arguments.of(written);
  if (!has) return { kind: "other", about: wholeCharacters(whole(written), MOST_OTHER), fields: [] };
  return known(tool, has) ?? { kind: "other", about: has.about(), fields: has.all() };
}

/** True for a call that only looks: a read or a search of files. Cards of such calls in a row fold into one. */
export function looks(request: Request): boolean {
  return ["read", "list", "glob", "grep"].includes(request.kind);
}

/** The request in few words, on one line; empty where there is nothing to say. */
export function about(request: Request): string {
  const within = (what: string, path: string) => (path === "" || path === "." ? what : `${what} · ${path}`);
  switch (request.kind) {
    case "shell":
      return line(request.command);
    case "read":
      return line(request.first === null ? request.path : `${request.path}:${request.first}`);
    case "write":
    case "edit":
      return line(request.path);
    case "list":
      return line(request.path || ".");
    case "glob":
      return line(within(request.pattern, request.path));
    case "grep":
      return line(within(within(request.pattern, request.path), request.files));
    case "fetch":
      return line(request.url);
    case "search":
      return line(request.query);
    case "ask":
      return line(request.question);
    case "plan":
      return line(request.plan.trimStart().split("\n", 1)[0] ?? "");
    case "task":
      return request.task === null ? "" : `#${request.task}`;
    case "agent":
      return line(request.role === "" ? request.task : `${request.role} · ${request.task}`);
    case "todo":
      return "";
    case "other":
      return line(request.about);
  }
}

function known(tool: string, has: Arguments): Request | null {
  // A name may be a key of every object, such as `constructor`.
  const name = tool.toLowerCase();
  const kind = Object.hasOwn(KINDS, name) ? KINDS[name] : undefined;
  const [path, pattern] = [has.whole("path"), has.whole("pattern")];
  switch (kind) {
    case "shell": {
      const command = has.whole("command");
      if (command === null) return null;
      return { kind, command, directory: has.whole("directory") ?? "", background: has.flag("background") };
    }
    case "read": {
      const first = has.number("first_line");
      return path === null ? null : { kind, path, first: first !== null && first > 1 ? first : null };
    }
    case "write": {
      const content = has.content("content");
      return path === null || content === null ? null : { kind, path, content };
    }
    case "edit": {
      const [old, now] = [has.content("old"), has.content("new")];
      if (path === null || old === null || now === null) return null;
      return { kind, path, old, new: now, every: has.flag("replace_all") };
    }
    case "list":
      return { kind, path: path ?? "" };
    case "glob":
      return pattern === null ? null : { kind, pattern, path: path ?? "" };
    case "grep":
      return pattern === null ? null : { kind, pattern, path: path ?? "", files: has.whole("files") ?? "" };
    case "fetch": {
      const url = has.whole("url");
      return url === null ? null : { kind, url };
    }
    case "search": {
      const query = has.whole("query");
      return query === null ? null : { kind, query };
    }
    case "todo":
      return { kind };
    case "task":
      return { kind, task: has.number("task") };
    case "agent": {
      const [task, prompt] = [has.whole("description"), has.whole("prompt")];
      return task === null || prompt === null ? null : { kind, task, role: has.whole("agent") ?? "", prompt };
    }
    case "ask": {
      const question = has.whole("question");
      return question === null ? null : { kind, question, choices: has.list("choices") };
    }
    case "plan": {
      const plan = has.raw("plan");
      return plan === null ? null : { kind, plan: text(plan) };
    }
    default:
      return null;
  }
}

/** The arguments of a call. */
class Arguments {
  private constructor(private readonly fields: Readonly<Record<string, unknown>>) {}

  /** The arguments; `null` if they are no JSON object. */
  static of(written: string): Arguments | null {
    try {
      const parsed: unknown = JSON.parse(written);
      if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed)) return null;
      return new Arguments({ ...parsed });
    } catch {
      return null;
    }
  }

  raw(name: string): string | null {
    const value = Object.hasOwn(this.fields, name) ? this.fields[name] : null;
    return typeof value === "string" ? value : null;
  }

  whole(name: string): string | null {
    const raw = this.raw(name);
    return raw === null ? null : whole(raw);
  }

  /** The text of a file. How its lines end does not matter to people. */
  content(name: string): string | null {
    const raw = this.raw(name);
    return raw === null
      ? null
      : whole(wholeCharacters(raw.includes("\r") ? raw.replace(/\r\n/g, "\n") : raw, MOST_CONTENT));
  }

  number(name: string): number | null {
    const value = this.fields[name];
    return typeof value === "number" && Number.isSafeInteger(value) && value > 0 ? value : null;
  }

  flag(name: string): boolean {
    return this.fields[name] === true;
  }

  /** A list of texts, one on each line. */
  list(name: string): readonly string[] {
    const lines = (this.raw(name) ?? "").split("\n", 4 * MOST_CHOICES).map((of) => of.trim());
    return lines
      .filter((of) => of !== "")
      .slice(0, MOST_CHOICES)
      .map(whole);
  }

  /** All arguments, as far as they are shown. */
  all(): readonly Field[] {
    const shown = Object.entries(this.fields).slice(0, MOST_FIELDS);
    return shown.map(([name, value]) => {
      const of = typeof value === "string" ? value : (JSON.stringify(value) ?? "");
      return { name: line(name), text: wholeCharacters(whole(of), MOST_OTHER) };
    });
  }

  /** The argument that tells one call of an unknown tool from another. */
  about(): string {
    const names = ["command", "query", "pattern", "path", "url", "of", "text", ...Object.keys(this.fields)];
    const found = names.map((name) => this.raw(name)).find((value) => value !== null);
    return wholeCharacters(whole(found ?? ""), MOST_OTHER);
  }
}
