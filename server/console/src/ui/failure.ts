import i18next from "i18next";
import { ProblemError } from "@/api/problem";
import { told, toldProblem } from "@/i18n/told";

/** The reason of a failure, for people. A failure that brings no words of its own has some all the same. */
export function reasonOf(error: unknown): string {
  if (error instanceof ProblemError && error.isUnreachable) return i18next.t("unreachable");
  if (error instanceof ProblemError) return toldProblem(error.code, error.message);
  const words = error instanceof Error ? error.message : String(error);
  return words ? told(words) : i18next.t("noReason");
}
