import { describe, expect, it } from "vitest";
import type { Key } from "@/api/schema";
import { endsWith, requestOf } from "./key-form";

function key(id: string, made_by?: string, kind = "api_key"): Key {
  return { id, name: id, kind, created_at: "2026-11-30T00:00:00Z", ...(made_by ? { made_by } : {}) };
}

describe("a key", () => {
  it("is asked for with what was chosen, and no more", () => {
    expect(requestOf({ name: " ci ", scopes: ["read", "exec"], days: undefined, from: " " })).toEqual({ name: "ci", scopes: ["exec", "read"] });
    expect(requestOf({ name: "ci", scopes: ["read"], days: 30, from: "10.0.0.0/8, ::1" })).toEqual({ name: "ci", scopes: ["read"], valid_for_s: 2_592_000, from: "10.0.0.0/8,::1" });
  });

  it("ends with the keys that it made, and those that they made", () => {
    const keys = [key("c", "b"), key("other", "terminal"), key("b", "a"), key("a", "terminal"), key("terminal", undefined, "sign_in")];
    expect(endsWith(keys[3] as Key, keys).map((one) => one.id)).toEqual(["b", "c"]);
    expect(endsWith(keys[0] as Key, keys)).toEqual([]);
  });
});
