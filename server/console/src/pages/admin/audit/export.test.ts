import { expect, test } from "vitest";
import type { AuditEntry } from "@/api/schema";
import { asCsv } from "./export";

const entry: AuditEntry = {
  seq: 1,
  at: "2026-11-28T00:00:00Z",
  who: "ann",
  who_id: "usr_1",
  what: "runner.renamed",
  outcome: "done",
  to: '=HYPERLINK("http://x","y")',
  to_id: "run_1",
  detail: { name: "a, b" } as unknown as AuditEntry["detail"],
};

test("a name that a spreadsheet would take for a formula is text", () => {
  expect(asCsv([entry])).toContain(`"'=HYPERLINK(""http://x"",""y"")"`);
});

test("each entry is one record, whatever its fields hold", () => {
  const lines = asCsv([{ ...entry, to: 'a "b"\nc' }]).split("\r\n");
  expect(lines).toHaveLength(3);
  expect(lines[1]).toContain('"a ""b""\nc"');
  expect(lines[1]?.startsWith("1,2026-11-28T00:00:00Z,ann,usr_1,runner.renamed,done,")).toBe(true);
});
