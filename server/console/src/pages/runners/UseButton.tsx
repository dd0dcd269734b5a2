import { useState } from "react";
import { useTranslation } from "react-i18next";
import { mayWork, useMe } from "@/api/me";
import { chooseRunner } from "@/api/runners";
import type { Runner } from "@/api/schema";
import { Button } from "@/ui/Button";
import { say, sayFailed } from "@/ui/Toast";
import { placeName } from "./order";

interface UseProps {
  runner: Runner;
  /** One of its workspaces; absent for its first one. */
  workspace?: string;
  primary?: boolean;
  /** The words on the button; “Use” if absent. */
  words?: string;
  /** Called once it is chosen. */
  onUsed?: () => void;
}

/** Chooses where the person's tools run, and says from when on. */
export function UseButton({ runner, workspace, primary, words, onUsed }: UseProps) {
  const { t } = useTranslation("runners");
  const me = useMe();
  const [busy, setBusy] = useState(false);
  const place = placeName(runner.name, workspace);
  const used = me?.active_runner === runner.id && (me.active_workspace ?? undefined) === workspace && !me.active_runner_is_default;
  const use = async () => {
    setBusy(true);
    try {
      await chooseRunner(placeName(runner.id, workspace));
      say(t("usedNow", { place }));
      onUsed?.();
    } catch (error) {
      sayFailed(t("notUsed", { place }), error);
    } finally {
      setBusy(false);
    }
  };
  if (used) return <span className="inline-flex h-7 items-center px-2 text-dense first:pl-0 font-medium whitespace-nowrap text-muted">{t("inUse")}</span>;
  if (!mayWork(me)) return null;
  return (
    <Button size="sm" look={primary ? "primary" : "plain"} busy={busy} disabled={runner.locked ?? false} aria-label={t("usePlace", { place })} onClick={() => void use()}>
      {words ?? t("use")}
    </Button>
  );
}
