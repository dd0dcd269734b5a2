/** Words on extensions: what one is for, what a hook or a tool server does, and which of two of one name counts. */
import type { Extension, Extensions, Hook, Layer, Provenance, ToolServer } from "@/api/schema";
import { headOf } from "@/format/head";

/** A kind of things that a session finds. */
export type FoundKind = "skill" | "agent" | "hook" | "mcp" | "plugin";

/** A thing that a session found. */
export interface FoundThing {
  kind: FoundKind;
  name: string;
  /** What it is for, or what it does. */
  about: string;
  /** Absent for what Gantry brings. */
  from: Provenance | undefined;
}

/** A file of a runner that people trust or do not, with all that it would have done. */
export interface FoundFile {
  path: string;
  digest: string;
  layer: Layer;
  trusted: boolean;
  things: FoundThing[];
}

/** Everything that a session found, in the order of the kinds. */
export function thingsOf({ skills = [], roles = [], hooks = [], servers = [], plugins = [] }: Extensions): FoundThing[] {
  return [
    ...skills.map(({ name, description, from }): FoundThing => ({ kind: "skill", name, about: description, from })),
    ...roles.map(({ name, description, from }): FoundThing => ({ kind: "agent", name, about: description, from: from ?? undefined })),
    ...hooks.map((hook): FoundThing => ({ kind: "hook", name: hook.matcher ? `${hook.on} · ${hook.matcher}` : hook.on, about: actionOf(hook), from: hook.from })),
    ...servers.map((server): FoundThing => ({ kind: "mcp", name: server.name, about: wayTo(server), from: server.from })),
    ...plugins.map(({ name, command, tools = [], from }): FoundThing => ({ kind: "plugin", name, about: [command.join(" "), ...tools.map((tool) => tool.name)].join("\n"), from })),
  ];
}

/** True for what lies on a runner. */
export function isOnRunner(from: Provenance): boolean {
  return from.layer === "project" || from.layer === "local";
}

/** The files with hooks, tool servers and plugins, those that wait for trust first. Skills and agents give no rights, so nobody trusts them. */
export function filesOf(things: readonly FoundThing[]): FoundFile[] {
  const files = new Map<string, FoundFile>();
  for (const thing of things) {
    const { kind, from } = thing;
    if (!from || !isOnRunner(from) || kind === "skill" || kind === "agent") continue;
    const key = `${from.at}\n${from.digest}`;
    const file = files.get(key) ?? { path: from.at, digest: from.digest, layer: from.layer, trusted: from.trusted ?? false, things: [] };
    file.things.push(thing);
    files.set(key, file);
  }
  return [...files.values()].sort((a, b) => Number(a.trusted) - Number(b.trusted) || (a.path < b.path ? -1 : 1));
}

/** A registered extension that does not count in a session because a narrower layer has one of its name. */
export interface Shadowed {
  extension: Extension;
  by: Provenance;
}

/** The registered extensions that others of the same kind and name stand before. */
export function shadowedIn(things: readonly FoundThing[], registered: readonly Extension[]): Shadowed[] {
  return registered.flatMap((extension) => {
    const one = things.find((thing) => thing.kind === extension.kind && thing.name === extension.name);
    return one?.from && one.from.layer !== extension.layer ? [{ extension, by: one.from }] : [];
  });
}

/** The person's own extension that stands before the tenant's one of the same kind and name. */
export function ownBefore(extension: Extension, all: readonly Extension[]): Extension | undefined {
  // All hooks count.
  if (extension.layer !== "tenant" || extension.kind === "hooks") return undefined;
  return all.find((other) => other.layer === "user" && other.kind === extension.kind && other.name === extension.name);
}

/** What a registered extension is for, or what it does, as far as its text tells on few lines; empty if it does not. */
export function aboutOf(extension: Extension): string {
  if (extension.kind === "skill" || extension.kind === "agent") return headOf(extension.text, "description") ?? "";
  const json = parsed(extension.text);
  if (extension.kind === "hooks") return keysOf(fieldOf(json, "hooks") ?? json).join(", ");
  const server = fieldOf(fieldOf(json, "mcpServers"), extension.name);
  const [url, command, args] = [fieldOf(server, "url"), fieldOf(server, "command"), fieldOf(server, "args")];
  if (typeof url === "string") return url;
  return [command, ...(Array.isArray(args) ? args : [])].filter((word) => typeof word === "string").join(" ");
}

function actionOf({ handler }: Hook): string {
  switch (handler.type) {
    case "command":
      return handler.command;
    case "http":
      return `POST ${handler.url}${givenHeaders(handler.headers ?? {})}`;
    case "mcp_tool": {
      const input = handler.input === undefined ? "" : ` ${JSON.stringify(handler.input)}`;
      return `${handler.server}: ${handler.tool}${input}`;
    }
    case "built_in":
      return handler.name;
  }
}

/** The headers of a hook. Values that may be secrets are hidden already. */
function givenHeaders(headers: Readonly<Record<string, string>>): string {
  const given = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  return given.length === 0 ? "" : ` with ${given.join(", ")}`;
}

function wayTo({ transport }: ToolServer): string {
  return transport.type === "http" ? transport.url : [transport.command, ...(transport.args ?? [])].join(" ");
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function fieldOf(of: unknown, name: string): unknown {
  return typeof of === "object" && of !== null ? (of as Record<string, unknown>)[name] : undefined;
}

function keysOf(of: unknown): string[] {
  return typeof of === "object" && of !== null ? Object.keys(of) : [];
}
