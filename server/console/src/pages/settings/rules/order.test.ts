import { expect, it } from "vitest";
import type { PermissionRule, TrustedFile } from "@/api/schema";
import { filesOf, inOrder } from "./order";

const file: TrustedFile = { id: "rul_1", path: ".gantry/permissions.toml", runner: "laptop", workspace: "main", changed: false, since: "2026-11-30T00:00:00Z" };

const rules: PermissionRule[] = [
  { rule: "a", decision: "allow", set_by: "operator" },
  { rule: "b", decision: "deny", set_by: "user" },
  { rule: "c", decision: "allow", set_by: "project", file },
  { rule: "d", decision: "ask", set_by: "project", file },
  { rule: "e", decision: "deny", set_by: "tenant" },
];

it("puts rules into the order in which they count, and keeps that of equal ones", () => {
  expect(inOrder(rules).map((rule) => rule.rule)).toEqual(["b", "e", "d", "a", "c"]);
});

it("gathers the rules of a file", () => {
  expect(filesOf(rules).map((found) => [found.file.id, found.rules.map((rule) => rule.rule)])).toEqual([["rul_1", ["c", "d"]]]);
});
