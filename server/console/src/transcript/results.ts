/** The facts in the results of the file tools: the server tells them to the model in sentences alone. */
import type { CallItem } from "./model";

/** The line of its file at which an edit began, from 1; `null` if the result does not tell. */
export function editedLine(call: CallItem): number | null {
  const line = / at line (\d{1,9})\s*$/.exec(call.result.slice(-64))?.[1];
  return line === undefined ? null : Number(line);
}

/** True for a write of what stood there already. */
export function changedNothing(call: CallItem): boolean {
  return call.request.kind === "write" && call.result.trimEnd().endsWith("already; nothing changed");
}

/** True for a write over a file that was there. What stood in it is not told. */
export function replacedFile(call: CallItem): boolean {
  return call.request.kind === "write" && call.result.startsWith("replaced ");
}

/** True for a write that made its file. */
export function madeFile(call: CallItem): boolean {
  return call.request.kind === "write" && call.result.startsWith("made ");
}
