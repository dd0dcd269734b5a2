import { describe, expect, it } from "vitest";
import type { Runner } from "@/api/schema";
import { filterRunners, sortRunners, stateOf } from "./order";

function runner(name: string, more: Partial<Runner> = {}): Runner {
  return { id: `run_${name}`, name, online: false, active: false, isolation: "none", workspace: "/w", hostname: "host", platform: "linux/x86_64", version: "0.1.0", ...more };
}

describe("the state of a runner", () => {
  it("is locked before anything else, and refused only while it is not connected", () => {
    expect(stateOf(runner("a", { locked: true, online: true }))).toBe("locked");
    expect(stateOf(runner("a", { refused: "too old", online: true }))).toBe("online");
    expect(stateOf(runner("a", { refused: "too old", last_seen: "2026-01-01T00:00:00Z" }))).toBe("refused");
    expect(stateOf(runner("a", { last_seen: "2026-01-01T00:00:00Z" }))).toBe("away");
    expect(stateOf(runner("a"))).toBe("never");
  });
});

describe("a search", () => {
  it("finds runners that have all of its words, wherever they stand", () => {
    const all = [runner("laptop", { labels: { zone: "office" }, owner: "ann" }), runner("dock", { owner: "bob" })];
    expect(filterRunners(all, "OFFICE ann").map((one) => one.name)).toEqual(["laptop"]);
    expect(filterRunners(all, "zone=office bob")).toEqual([]);
    expect(filterRunners(all, "  ")).toHaveLength(2);
  });
});

describe("the order", () => {
  it("by name counts numbers as numbers", () => {
    expect(sortRunners([runner("vm-10"), runner("vm-9")], "name").map((one) => one.name)).toEqual(["vm-9", "vm-10"]);
  });

  it("by state begins with what is online, then with what was seen last", () => {
    const old = runner("old", { last_seen: "2026-01-01T00:00:00Z" });
    const young = runner("young", { last_seen: "2026-02-01T00:00:00Z" });
    const sorted = sortRunners([runner("never"), old, young, runner("here", { online: true })], "state");
    expect(sorted.map((one) => one.name)).toEqual(["here", "young", "old", "never"]);
  });
});
