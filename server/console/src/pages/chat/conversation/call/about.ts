/** The signs and words of calls. */
import { Bot, CircleHelp, FilePen, FilePlus2, FileText, FolderTree, Globe, ListTodo, type LucideIcon, ScrollText, Search, SquareTerminal, Wrench } from "lucide-react";
import type { CallItem } from "@/transcript/model";
import { about, type Request } from "@/transcript/request";

const ICONS: Readonly<Record<Request["kind"], LucideIcon>> = {
  shell: SquareTerminal,
  read: FileText,
  write: FilePlus2,
  edit: FilePen,
  list: FolderTree,
  glob: Search,
  grep: Search,
  fetch: Globe,
  search: Globe,
  todo: ListTodo,
  task: SquareTerminal,
  agent: Bot,
  ask: CircleHelp,
  plan: ScrollText,
  other: Wrench,
};

/** The sign of a call's kind. */
export function iconOf(call: CallItem): LucideIcon {
  return ICONS[call.request.kind];
}

/** The kinds of calls that have a verb of their own before what they are about. A command speaks for itself. */
export type VerbKind = Exclude<Request["kind"], "shell" | "other">;

/** The name of the verb's words; undefined where the call is told without one. */
export function verbOf(call: CallItem): `verb_${VerbKind}` | undefined {
  const { kind } = call.request;
  return kind === "shell" || kind === "other" ? undefined : `verb_${kind}`;
}

/** The thing that a call is about, on one line. */
export function aboutOf(call: CallItem): string {
  const words = about(call.request);
  if (call.request.kind !== "other") return words;
  return words ? `${call.tool} ${words}` : call.tool;
}

/** True while the call may be stopped. */
export function isRunning(call: CallItem): boolean {
  return call.state === "running" || (call.state === "background" && call.settled === null);
}

/** True for a call that people did not allow: that is no failure. */
export function isDenied(call: CallItem): boolean {
  const answer = call.approval?.answered?.answer;
  return answer !== undefined && answer.outcome !== "allowed" && answer.outcome !== "said";
}

/** True for a call that failed by itself: no person denied or stopped it. */
export function isFailure(call: CallItem): boolean {
  return call.end?.failed === true && !call.end.unplaced && call.end.outcome !== "cancelled" && !isDenied(call);
}
