import { Check, Minus } from "lucide-react";
import { useTranslation } from "react-i18next";
import type { ModelProbe } from "@/api/schema";
import { duration } from "@/format/time";

/** The answer of a model to a small request: how long it took, and what it can do. */
export function ProbeNote({ probe }: { probe: ModelProbe }) {
  const { t } = useTranslation("settings");
  const abilities = [
    { can: probe.streams, words: t("canStream") },
    { can: probe.calls_tools, words: t("canTools") },
    { can: probe.sees, words: t("canSee") },
    { can: probe.thinks, words: t("canThink") },
  ];
  return (
    <div role="status" className="mt-2 rounded-control bg-good-soft px-3 py-2 text-dense">
      <p className="wrap-anywhere">{t("answered", { model: probe.answered || probe.model, time: duration(probe.duration_ms) })}</p>
      <ul className="mt-0.5 flex flex-wrap gap-x-3 text-meta text-muted">
        {abilities.map(({ can, words }) => (
          <li key={words} className="inline-flex items-center gap-1">
            {can ? <Check aria-hidden className="size-3 text-good" /> : <Minus aria-hidden className="size-3" />}
            {words}
            <span className="sr-only">{t(can ? "yes" : "no")}</span>
          </li>
        ))}
      </ul>
    </div>
  );
}
