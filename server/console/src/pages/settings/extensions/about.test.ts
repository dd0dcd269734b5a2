import { describe, expect, it } from "vitest";
import type { Extension, Extensions, Layer } from "@/api/schema";
import { aboutOf, filesOf, ownBefore, shadowedIn, thingsOf } from "./about";

const from = (layer: Layer, at: string, trusted = false) => ({ layer, at, digest: at.padEnd(64, "0"), trusted });
const registered = (layer: "tenant" | "user", kind: Extension["kind"], name: string, text = "") => ({ id: `${layer} ${name}`, layer, kind, name, text }) as Extension;

const FOUND = {
  skills: [{ name: "pdf", description: "d", from: from("project", ".claude/skills/pdf/SKILL.md", true) }],
  roles: [{ name: "explore", description: "looks", instructions: "" }],
  hooks: [
    { on: "PreToolUse", matcher: "Bash", handler: { type: "command", command: "check\nit" }, timeout_ms: 1, from: from("project", ".claude/settings.json") },
    { on: "Stop", handler: { type: "http", url: "https://b.example", headers: { "X-Key": "(hidden)" } }, timeout_ms: 1, from: from("user", "mine", true) },
    { on: "Stop", handler: { type: "built_in", name: "secrets" }, timeout_ms: 1, from: from("user", "mine", true) },
  ],
  servers: [
    { name: "db", transport: { type: "stdio", command: "npx", args: ["-y", "db"] }, from: from("project", ".mcp.json", true) },
    { name: "web", transport: { type: "http", url: "https://a.example" }, from: from("project", ".mcp.json", true) },
  ],
} as unknown as Extensions;

describe("what a session found", () => {
  const things = thingsOf(FOUND);

  it("says in full what each thing does", () => {
    expect(things.map(({ kind, name, about }) => [kind, name, about])).toEqual([
      ["skill", "pdf", "d"],
      ["agent", "explore", "looks"],
      ["hook", "PreToolUse · Bash", "check\nit"],
      ["hook", "Stop", "POST https://b.example with X-Key: (hidden)"],
      ["hook", "Stop", "secrets"],
      ["mcp", "db", "npx -y db"],
      ["mcp", "web", "https://a.example"],
    ]);
  });

  it("is trusted file by file, those that wait first; skills need no trust", () => {
    expect(filesOf(things).map(({ path, trusted, things }) => [path, trusted, things.length])).toEqual([
      [".claude/settings.json", false, 1],
      [".mcp.json", true, 2],
    ]);
  });

  it("stands before what is registered under the same name", () => {
    const all = [registered("tenant", "skill", "pdf"), registered("user", "mcp", "db"), registered("user", "mcp", "other")];
    expect(shadowedIn(things, all).map(({ extension, by }) => [extension.name, by.at])).toEqual([
      ["pdf", ".claude/skills/pdf/SKILL.md"],
      ["db", ".mcp.json"],
    ]);
  });
});

describe("a registered extension", () => {
  it("of everyone stands behind the person's own, except for hooks", () => {
    const all = [registered("tenant", "skill", "pdf"), registered("user", "skill", "pdf"), registered("tenant", "hooks", "h"), registered("user", "hooks", "h")];
    expect(all.map((one) => ownBefore(one, all)?.id)).toEqual(["user pdf", undefined, undefined, undefined]);
  });

  it("says what it is for or what it does", () => {
    expect(aboutOf(registered("user", "skill", "pdf", "---\ndescription: Fills forms\n---\n"))).toBe("Fills forms");
    expect(aboutOf(registered("user", "hooks", "h", '{"hooks": {"Stop": [], "PreToolUse": []}}'))).toBe("Stop, PreToolUse");
    expect(aboutOf(registered("user", "mcp", "db", '{"mcpServers": {"db": {"command": "npx", "args": ["db"]}}}'))).toBe("npx db");
    expect(aboutOf(registered("user", "mcp", "db", "no JSON"))).toBe("");
  });
});
