/** Questions to people and their outcomes, made harmless for display. */

import type { Answer, Question, SessionEventApprovalAnswered } from "@/api/schema";
import type { Answered } from "./model";
import { line, text, whole } from "./safe";

/** The question with each letter of it in sight: a person judges it. */
export function question(of: Question): Question {
  switch (of.kind) {
    case "free":
      return { ...of, text: whole(of.text), choices: (of.choices ?? []).map(whole) };
    case "plan":
      return { ...of, text: text(of.text) };
    case "call":
      return {
        ...of,
        tool: line(of.tool),
        text: whole(of.text),
        directory: whole(of.directory ?? ""),
        environment: (of.environment ?? []).map(whole),
        paths: (of.paths ?? []).map((planned) => ({ ...planned, path: whole(planned.path) })),
        runner_name: line(of.runner_name ?? ""),
        isolation: line(of.isolation ?? ""),
        reasons: (of.reasons ?? []).map((reason) => line(reason)),
        why: line(of.why),
        rule: of.rule == null ? null : whole(of.rule),
      };
  }
}

/** The outcome that an event tells. */
export function answered(event: SessionEventApprovalAnswered, at: number): Answered {
  return { answer: answer(event.answer), by: event.by ?? null, name: line(event.name ?? ""), at };
}

function answer(of: Answer): Answer {
  switch (of.outcome) {
    case "allowed":
      return {
        ...of,
        command: of.command == null ? null : whole(of.command),
        rule: of.rule == null ? null : whole(of.rule),
      };
    case "denied":
      return { ...of, words: of.words == null ? null : text(of.words) };
    case "said":
      return { ...of, text: text(of.text) };
    case "unanswered":
      return of;
  }
}
