import { describe, expect, it } from "vitest";
import type { Sandbox } from "@/api/schema";
import { changeOf, filterSandboxes, formOf, wrongLimits } from "./limits";

const sandbox: Sandbox = {
  id: "sbx_1",
  runner: "run_1",
  runner_name: "dock",
  owner: "ann",
  template: "base",
  state: "running",
  since: "2026-01-01T00:00:00Z",
  memory_bytes: 512 * 1024 ** 2,
  cpu_millis: 1500,
  processes: 100,
  idle_for_ms: 1_800_000,
  network: "none",
};

describe("the form of a sandbox's limits", () => {
  it("asks for nothing that stays as it is", () => {
    const form = formOf(sandbox);
    expect(form).toEqual({ template: "base", memory: "512", processors: "1.5", processes: "100", idle: "30", network: "none" });
    expect(wrongLimits(form)).toEqual([]);
    expect(changeOf(form, sandbox)).toBeUndefined();
    expect(changeOf({ ...form, memory: "1024", network: "open" }, sandbox)).toEqual({ memory_bytes: 1024 ** 3, network: "open" });
  });

  it("keeps within the server's bounds", () => {
    const form = formOf(sandbox);
    expect(wrongLimits({ ...form, memory: "63", processors: "1025", processes: "8.5", idle: "-1" })).toEqual(["memory", "processors", "processes", "idle"]);
    expect(wrongLimits({ ...form, memory: "1e3", processes: "", idle: "0.5" })).toEqual(["memory", "processes", "idle"]);
  });
});

describe("a search", () => {
  it("finds sandboxes that have all of its words", () => {
    expect(filterSandboxes([sandbox], "ANN dock")).toHaveLength(1);
    expect(filterSandboxes([sandbox], "ann stopped")).toHaveLength(0);
  });
});
