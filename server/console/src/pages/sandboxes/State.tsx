import { useTranslation } from "react-i18next";
import { Dot, type DotState } from "@/ui/Dot";

const STATES = ["wanted", "starting", "running", "stopped", "failed", "removed"] as const;

const DOTS: Record<(typeof STATES)[number], DotState> = { wanted: "busy", starting: "busy", running: "good", stopped: "off", failed: "bad", removed: "off" };

/** A sandbox's state in a word, with its dot. A word that the console does not know is shown as the server wrote it. */
export function State({ state }: { state: string }) {
  const { t } = useTranslation("sandboxes");
  const known = STATES.find((one) => one === state);
  return (
    <span className="inline-flex items-center gap-1.5 whitespace-nowrap">
      <Dot state={known ? DOTS[known] : "off"} />
      {known === "removed" ? t("removedState") : known ? t(known) : state}
    </span>
  );
}
