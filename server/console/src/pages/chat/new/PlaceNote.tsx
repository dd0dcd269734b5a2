import { useNavigate } from "@tanstack/react-router";
import { ServerOff, TriangleAlert } from "lucide-react";
import { useTranslation } from "react-i18next";
import { isolationWords } from "@/i18n/isolation";
import { Button } from "@/ui/Button";
import { Card } from "@/ui/Page";
import { type ChatPlace, usePlace } from "../composer/place";

/** What the place of a new chat means: what the agent can reach there, or why it cannot work. */
export function PlaceNote() {
  const { t } = useTranslation("chat");
  const place = usePlace(undefined);
  if (!place) return null;
  const words = wordsOf(t, place);
  const bad = place.state !== "online";
  return (
    <p className={bad ? "mt-3 flex items-start gap-2 px-3 text-dense text-warn" : "mt-3 px-3 text-dense text-muted"}>
      {bad && <TriangleAlert aria-hidden className="mt-px size-4 shrink-0" />}
      <span className="text-pretty wrap-anywhere">{words}</span>
    </p>
  );
}

function wordsOf(t: ReturnType<typeof useTranslation<"chat">>["t"], { state, name, isolation }: ChatPlace): string {
  switch (state) {
    case "online":
      return isolation === "none" ? t("newPlaceNone", { name }) : t("newPlaceIsolated", { name, isolation: isolationWords(isolation) });
    case "away":
      return t("newPlaceAway", { name });
    case "locked":
      return t("newPlaceLocked", { name });
    case "refused":
      return t("newPlaceRefused", { name });
    case "removed":
      return t("newPlaceRemoved", { name });
    case "unknown":
      return t("newPlaceUnknown", { name });
  }
}

/** Says that there is no runner, and leads to the dialog that adds one. */
export function NoRunner() {
  const { t } = useTranslation("chat");
  const navigate = useNavigate();
  if (usePlace(undefined) !== null) return null;
  return (
    <Card className="mb-4 flex items-start gap-3 p-4">
      <ServerOff aria-hidden className="mt-0.5 size-5 shrink-0 text-faint" strokeWidth={1.5} />
      <div className="min-w-0 flex-1">
        <h2 className="font-medium">{t("newNoRunner")}</h2>
        <p className="mt-1 mb-3 text-dense text-muted">{t("newNoRunnerHint")}</p>
        <Button look="primary" onClick={() => void navigate({ to: "/runners", search: { enrol: 1 } })}>
          {t("newAddRunner")}
        </Button>
      </div>
    </Card>
  );
}
