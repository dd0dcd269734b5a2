import { useTranslation } from "react-i18next";
import { isolationWords } from "@/i18n/isolation";
import type { Place } from "@/transcript/model";
import { cx } from "@/ui/class";

/** The place where a call ran: the runner, and its isolation where there is any. */
export function PlaceWords({ place, className }: { place: Place | null; className?: string }) {
  const { t } = useTranslation("transcript");
  if (!place) return null;
  const isIsolated = place.isolation !== "none" && place.isolation !== "";
  return (
    <span title={place.folder || undefined} className={cx("max-w-60 shrink-0 truncate text-meta text-muted", className)}>
      {isIsolated ? t("placeIsolated", { runner: place.runnerName, isolation: isolationWords(place.isolation) }) : place.runnerName}
    </span>
  );
}
