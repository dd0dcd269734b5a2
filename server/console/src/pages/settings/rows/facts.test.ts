import { describe, expect, it } from "vitest";
import type { Setting } from "@/api/schema";
import { appliesWhen, isSetIn, modeOf, personOf } from "./facts";

describe("facts of settings", () => {
  it("let a value be taken back only in the layer that set it", () => {
    const setting: Setting = { name: "steps", value: "80", set_by: "tenant", allowed: "" };
    expect([isSetIn("tenant", setting), isSetIn("user", setting)]).toEqual([true, false]);
  });

  it("know when a change counts", () => {
    expect([appliesWhen("runner"), appliesWhen("model"), appliesWhen("sudo")]).toEqual(["appliesNextMessage", "appliesNextStep", "appliesAtOnce"]);
  });

  it("tell a person who was removed, and modes that there are", () => {
    expect(personOf("ann, removed")).toEqual({ name: "ann", removed: true });
    expect(personOf("ann")).toEqual({ name: "ann", removed: false });
    expect([modeOf("auto"), modeOf("wild"), modeOf(null)]).toEqual(["auto", undefined, undefined]);
  });
});
