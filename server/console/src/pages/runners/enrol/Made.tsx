import { useEffect, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { useCountdown } from "@/ui/Time";
import { Button } from "@/ui/Button";
import { ErrorNote } from "@/ui/ErrorNote";
import type { MadeToken } from "./useEnrolment";
import { Expires } from "./Expires";
import { isSound } from "./line";
import { Lines } from "./Lines";
import { Rights } from "./Rights";
import { Waiting } from "./Waiting";

interface MadeProps {
  made: MadeToken;
  busy: boolean;
  /** Makes another token on the same terms. */
  onAgain: () => void;
  onClose: () => void;
}

/** The line to paste, how long it works, who came, and what the machine gives. */
export function Made({ made, busy, onAgain, onClose }: MadeProps) {
  const { t } = useTranslation("runners");
  const left = useCountdown(made.token.expires_at);
  const [arrived, setArrived] = useState(false);
  const expired = left === 0;
  const part = useRef<HTMLDivElement>(null);
  // The form with the focus is gone; what comes next is to copy the line.
  useEffect(() => {
    part.current?.querySelector<HTMLElement>("[role=tabpanel] button")?.focus();
  }, []);
  if (!isSound(made.token)) return <ErrorNote error={new Error(t("unsound"))} />;
  return (
    <div ref={part} className="flex flex-col gap-4">
      {expired && !arrived ? (
        <div className="flex flex-wrap items-center gap-3 rounded-control bg-warn-soft px-3 py-2 text-dense">
          <p className="flex-1">{t("expired")}</p>
          <Button size="sm" look="primary" busy={busy} onClick={onAgain}>
            {t("newToken")}
          </Button>
        </div>
      ) : (
        !arrived && (
          <>
            <Lines made={made} />
            <p className="text-meta text-muted">
              {made.terms.fleet ? t("worksTimes", { count: Number(made.terms.uses) }) : t("worksOnce")} <Expires at={made.token.expires_at} /> {t("shownOnce")}
            </p>
          </>
        )
      )}
      <Waiting made={made} expired={expired} onArrived={() => setArrived(true)} onClose={onClose} />
      <Rights name={made.terms.name} />
    </div>
  );
}
