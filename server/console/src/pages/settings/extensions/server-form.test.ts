import { describe, expect, it } from "vitest";
import type { Extension } from "@/api/schema";
import { formOf, isPairName, isServerName, textOfServer, wordsOf } from "./server-form";

const declared = (server: object) => ({ kind: "mcp", name: "db", text: JSON.stringify({ mcpServers: { db: server } }) }) as Extension;

describe("the form of a tool server", () => {
  it("splits a command as a shell does", () => {
    expect(wordsOf(`npx -y "@a/b c" 'd "e' f\\ g ""`)).toEqual(["npx", "-y", "@a/b c", 'd "e', "f g", ""]);
    expect(wordsOf("say 'x")).toBeUndefined();
    expect(wordsOf("  ")).toEqual([]);
  });

  it("declares an address or a program", () => {
    const form = { name: "db", url: " https://a.example/mcp ", command: "run it", pairs: [{ name: "A", value: "b" }, { name: "", value: "" }] };
    expect(JSON.parse(textOfServer({ ...form, way: "http" }))).toEqual({ mcpServers: { db: { type: "http", url: "https://a.example/mcp", headers: { A: "b" } } } });
    expect(JSON.parse(textOfServer({ ...form, way: "stdio" }))).toEqual({ mcpServers: { db: { command: "run", args: ["it"], env: { A: "b" } } } });
  });

  it("keeps what is stored and shows no value but references", () => {
    const before = declared({ command: "run", args: ["it's", "-v"], env: { KEY: "(hidden)", HOME: "${HOME}" } });
    const form = formOf(before);
    expect(form.pairs).toEqual([{ name: "KEY", value: "", stored: true }, { name: "HOME", value: "${HOME}" }]);
    expect(textOfServer(form)).toBe(before.text);
    expect(formOf(declared({ type: "http", url: "https://a.example" }))).toMatchObject({ way: "http", url: "https://a.example", pairs: [] });
  });

  it("takes names that can be sent", () => {
    expect([isServerName("my_db-2"), isServerName("a b"), isServerName("x".repeat(33))]).toEqual([true, false, false]);
    expect([isPairName("http", "X-Key"), isPairName("http", "X Key"), isPairName("stdio", "API_KEY"), isPairName("stdio", "X-Key")]).toEqual([true, false, true, false]);
  });
});
