import { useTranslation } from "react-i18next";
import { duration } from "@/format/time";
import { told } from "@/i18n/told";
import type { Working as Turn } from "@/transcript/facts";
import { Dot } from "@/ui/Dot";
import { useConversation } from "./context";
import { useNow } from "./time";

/** The thing that the turn waits for, and for how long. It has one height, whatever it says. */
export function Working({ working }: { working: Turn | null }) {
  const { t } = useTranslation("transcript");
  const { live } = useConversation();
  useNow();
  if (!working) return null;
  const { activity } = working;
  const words = activity.what === "notice" ? told(activity.text) : activity.what === "calls" ? t("works_calls", { count: activity.calls.length }) : t(`works_${activity.what}`);
  return (
    <div className="flex h-6 items-center gap-2 text-meta text-muted">
      <Dot state={live ? (activity.what === "person" || activity.what === "notice" ? "warn" : "busy") : "off"} />
      <span className="min-w-0 truncate">{words}</span>
      {/* The times of the feed are this machine's. */}
      <span className="tabular-nums">{duration(Math.max(0, Date.now() - activity.since))}</span>
    </div>
  );
}
