import { useState } from "react";
import { useTranslation } from "react-i18next";
import { stopOperation } from "@/api/operations";
import { Button } from "@/ui/Button";
import { Dialog } from "@/ui/Dialog";
import { sayFailed } from "@/ui/Toast";
import type { OpenTerminal } from "./terminals";

/** Asks what becomes of a shell whose tab is closed: it ends, or goes on unseen. */
export function CloseDialog({ terminal, onKeep, onClose }: { terminal: OpenTerminal; onKeep: () => void; onClose: () => void }) {
  const { t } = useTranslation("terminal");
  const [busy, setBusy] = useState(false);
  const end = async () => {
    setBusy(true);
    try {
      await stopOperation(terminal.operation);
      onClose();
    } catch (error) {
      setBusy(false);
      sayFailed(t("notEnded"), error);
    }
  };
  return (
    <Dialog
      open
      onClose={onKeep}
      title={t("closeTitle")}
      description={t("closeHint", { runner: terminal.runner })}
      actions={
        <>
          <Button onClick={onKeep}>{t("cancel", { ns: "common" })}</Button>
          <Button onClick={onClose}>{t("leaveRunning")}</Button>
          <Button look="danger" busy={busy} onClick={() => void end()}>
            {t("endShell")}
          </Button>
        </>
      }
    />
  );
}
