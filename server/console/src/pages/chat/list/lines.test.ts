import { describe, expect, it } from "vitest";
import type { Approval, Session } from "@/api/schema";
import { type Line, linesOf } from "./lines";

const NOW = new Date(2026, 10, 30, 15, 0).getTime();

function session(id: string, at: Date, more: Partial<Session> = {}): Session {
  return { id, title: id, created_at: at.toISOString(), updated_at: at.toISOString(), last_seq: 1, ...more };
}

function approval(of: string): Approval {
  return { session: of, session_title: `title of ${of}`, asked_at: new Date(NOW).toISOString() } as Approval;
}

function shown(lines: Line[]): string[] {
  return lines.map((line) => (line.kind === "heading" ? `# ${line.group}` : line.entry.id));
}

describe("the lines of the list", () => {
  it("are grouped by need, work and day", () => {
    const sessions = [
      session("works", new Date(NOW), { running_turn: "trn_1" }),
      session("morning", new Date(2026, 10, 30, 0, 0, 1)),
      session("asks", new Date(2026, 10, 29, 23, 59)),
      session("evening", new Date(2026, 10, 29, 23, 59)),
      session("days ago", new Date(2026, 10, 25, 12, 0)),
      session("long ago", new Date(2026, 9, 1)),
    ];
    const lines = linesOf(sessions, [approval("asks"), approval("asks")], true, NOW);
    expect(shown(lines)).toEqual(["# needsYou", "asks", "# working", "works", "# today", "morning", "# yesterday", "evening", "# week", "days ago", "# earlier", "long ago"]);
    expect(lines[1]).toMatchObject({ entry: { waiting: 2 } });
  });

  it("hold a chat that asks even if its page is not loaded", () => {
    const lines = linesOf([], [approval("far"), approval("far")], true, NOW);
    expect(shown(lines)).toEqual(["# needsYou", "far"]);
    expect(lines[1]).toMatchObject({ entry: { title: "title of far", waiting: 2 } });
  });

  it("hold only what was searched for", () => {
    expect(linesOf([], [approval("far")], false, NOW)).toEqual([]);
  });
});
