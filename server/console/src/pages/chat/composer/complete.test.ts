import { describe, expect, it } from "vitest";
import type { Command, Extension, ListedEntry, Skill } from "@/api/schema";
import { commandsLike, filesLike, skillCommands, wordAt } from "./complete";

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
