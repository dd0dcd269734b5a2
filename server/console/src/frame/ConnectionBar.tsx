import { WifiOff } from "lucide-react";
import { useTranslation } from "react-i18next";
import { timeOfDay } from "@/format/time";
import { useLinkState } from "@/live/use";

/** Says that the connection is lost, and as of when the page shows things. It is absent while all is well. */
export function ConnectionBar() {
  const { t, i18n } = useTranslation("frame");
  const link = useLinkState();
  if (link.state !== "lost") return null;
  return (
    <div role="status" className="flex shrink-0 items-center justify-center gap-2 bg-warn-soft px-4 py-1 text-dense text-warn">
      <WifiOff aria-hidden className="size-4 shrink-0" />
      {t("connectionLost", { time: timeOfDay(link.asOf ?? link.since, i18n.language) })}
    </div>
  );
}
