import { describe, expect, it } from "vitest";
import type { Command, Extension, ListedEntry, SessionToolServer, Skill } from "@/api/schema";
import { commandsLike, filesLike, promptCommands, resourcesLike, skillCommands, wordAt } from "./complete";

const file = (name: string): ListedEntry => ({ name, kind: "file", bytes: 1 });
const folder = (name: string): ListedEntry => ({ name, kind: "directory", bytes: 0 });
const command = (name: string, args = ""): Command => ({ name, arguments: args, summary: "", between_turns: false });

describe("the word before the cursor", () => {
  it("is a command only at the beginning of the text", () => {
    expect(wordAt("/mo", 3)).toEqual({ kind: "command", start: 0, prefix: "mo" });
    expect(wordAt("/mode plan", 10)).toBeUndefined();
    expect(wordAt("see /mo", 7)).toBeUndefined();
    expect(wordAt(" /mo", 4)).toBeUndefined();
  });

  it("is a file behind an @ that begins a word", () => {
    expect(wordAt("read @src/ma", 12)).toEqual({ kind: "file", start: 5, prefix: "src/ma" });
    expect(wordAt("read\n@", 6)).toEqual({ kind: "file", start: 5, prefix: "" });
    expect(wordAt("mail ann@example", 16)).toBeUndefined();
    expect(wordAt("@a b", 4)).toBeUndefined();
  });

  it("goes over spaces in quotes", () => {
    expect(wordAt('read @"my no', 12)).toEqual({ kind: "file", start: 5, prefix: "my no" });
    expect(wordAt('read @"my notes" and', 20)).toBeUndefined();
  });

  it("ends at the cursor", () => {
    expect(wordAt("@src rest", 4)).toEqual({ kind: "file", start: 0, prefix: "src" });
  });

  it("is bounded", () => {
    expect(wordAt(`@${"a".repeat(5000)}`, 5001)).toBeUndefined();
  });
});

describe("skills", () => {
  it("are commands, that of the project before one that is registered, and none in a command's place", () => {
    const registered = ["pdf", "model", "notes"].map((name) => ({ kind: "skill", name, text: `---\nname: ${name}\ndescription: own ${name}\n---\n` }) as Extension);
    const found = [{ name: "pdf", description: "of the project" } as Skill];
    const skills = skillCommands([command("model")], registered, found);
    expect(skills.map(({ name, summary }) => [name, summary])).toEqual([
      ["pdf", "of the project"],
      ["notes", "own notes"],
    ]);
    expect(commandsLike(skills, "pd")[0]).toMatchObject({ name: "/pdf", insert: "/pdf ", whole: true });
  });
});

describe("tool servers", () => {
  const server = (prompts: SessionToolServer["prompts"], resources: SessionToolServer["resources"] = []) => ({ name: "s", prompts, resources }) as unknown as SessionToolServer;
  const prompt = (name: string, args = "", description = "") => ({ command: name, arguments: args, description });

  it("have prompts that are commands, and none in another command's place", () => {
    const prompts = promptCommands([command("p:own")], [server([prompt("p:own"), prompt("s:greet", "NAME [MOOD]", "Says hello.")]), server([prompt("s:greet", "NAME", "Once.")])]);
    expect(prompts.map(({ name, summary }) => [name, summary])).toEqual([["s:greet", "Once."]]);
    expect(commandsLike(prompts, "greet")[0]).toMatchObject({ name: "/s:greet", insert: "/s:greet ", arguments: "NAME", whole: false });
  });

  it("have resources that are words of a message, found by their address and their name", () => {
    const servers = [server([], [{ mention: "@s:doc://a/s:issue", name: "Plan" }, { mention: "@s:issue://17", name: "" }])];
    expect(resourcesLike(servers, "s:iss").map((one) => one.insert)).toEqual(["@s:issue://17 ", "@s:doc://a/s:issue "]);
    expect(resourcesLike(servers, "plan").map(({ name, summary }) => [name, summary])).toEqual([["s:doc://a/s:issue", "Plan"]]);
  });

  it("are strangers: their words are bounded and in plain letters, and a name that cannot be written as it is seen is left out", () => {
    const odd = ["s:a b", "s:a\u202eb", "s:a\u200bb", `s:${"a".repeat(5000)}`];
    const long = `\u001b[31m${"x".repeat(5000)}\n`;
    const servers = [server([...odd.map((name) => prompt(name)), prompt("s:ok", long, long)], [...odd.map((name) => ({ mention: `@${name}`, name: "" })), { mention: "@s:ok", name: long }])];
    const words = `${"x".repeat(400)}…`;
    expect(promptCommands([], servers)).toEqual([{ name: "s:ok", arguments: words, summary: words, between_turns: false }]);
    expect(resourcesLike(servers, "").map(({ name, summary }) => [name, summary])).toEqual([["s:ok", words]]);
    expect(resourcesLike([server([], Array.from({ length: 99 }, (_, at) => ({ mention: `@s:${at}`, name: "" })))], "")).toHaveLength(50);
  });
});

describe("completions", () => {
  it("of commands begin with the command itself", () => {
    const found = commandsLike([command("model", "[NAME]"), command("mode", "[MODE]"), command("resume", "SESSION")], "mode");
    expect(found.map((one) => [one.name, one.insert, one.whole])).toEqual([
      ["/mode", "/mode ", true],
      ["/model", "/model ", true],
    ]);
  });

  it("of files quote names with spaces and go on in folders", () => {
    const entries = [file("b main.rs"), folder("main"), file(".hidden-main"), file('bad "name" main')];
    expect(filesLike(entries, "src/ma").map((one) => one.insert)).toEqual(["@src/main/", '@"src/b main.rs" ']);
  });

  it("of files offer hidden ones to those who type the dot", () => {
    expect(filesLike([file(".env"), file("env")], ".e").map((one) => one.name)).toEqual([".env"]);
  });
});
