import { useTranslation } from "react-i18next";
import { duration } from "@/format/time";
import { told } from "@/i18n/told";
import type { CallItem } from "@/transcript/model";
import { isDenied } from "./about";

/** The end of a call in words, where there is more to say than its exit code. */
export function CallEndNote({ item, open }: { item: CallItem; open: boolean }) {
  const { t } = useTranslation("transcript");
  const { end } = item;
  const words: string[] = [];
  if (end && !end.unplaced) {
    if (end.outcome === "timed_out") words.push(t("callTimedOut", { time: duration(end.budgetMs) }));
    else if (end.overran && item.task === null) words.push(t("callOverran", { time: duration(end.durationMs), budget: duration(end.budgetMs) }));
    if (end.reason && end.exit === null && end.outcome !== "background" && !isDenied(item)) words.push(told(end.reason));
    if (open && end.awaits) words.push(t(`awaits_${end.awaits}`));
    if (open && end.excerpt) words.push(t("callExcerpt"));
  }
  if (item.settled !== null) words.push(t("taskEnded", { how: told(item.settled) }));
  if (words.length === 0) return null;
  return <p className="border-t border-line px-3 py-1.5 text-dense text-muted wrap-anywhere">{words.join(" · ")}</p>;
}
