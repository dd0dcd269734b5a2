import { useTranslation } from "react-i18next";
import type { Decision } from "@/api/schema";
import { Badge } from "@/ui/Badge";

const LOOKS = {
  allow: { tone: "good", words: "allow" },
  ask: { tone: "warn", words: "ask" },
  deny: { tone: "bad", words: "deny" },
} as const satisfies Record<Decision, object>;

/** A decision, in a word and a colour. All are equally wide, so that rules stand below each other. */
export function DecisionBadge({ decision }: { decision: Decision }) {
  const { t } = useTranslation("settings");
  const { tone, words } = LOOKS[decision];
  return (
    <Badge tone={tone} className="min-w-14 justify-center">
      {t(words)}
    </Badge>
  );
}
