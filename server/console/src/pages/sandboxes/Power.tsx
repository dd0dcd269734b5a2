import { useState } from "react";
import { useTranslation } from "react-i18next";
import { useMe } from "@/api/me";
import { startSandbox, stopSandbox } from "@/api/sandboxes";
import type { Sandbox } from "@/api/schema";
import { Button } from "@/ui/Button";
import { Confirm } from "@/ui/Confirm";
import { sayFailed } from "@/ui/Toast";

/** Starts a sandbox, or stops it once the person knows what ends. */
export function Power({ sandbox }: { sandbox: Sandbox }) {
  const { t } = useTranslation("sandboxes");
  const me = useMe();
  const [busy, setBusy] = useState(false);
  const [asked, setAsked] = useState(false);
  const start = async () => {
    setBusy(true);
    try {
      await startSandbox(sandbox.id);
    } catch (error) {
      sayFailed(t("notStarted"), error);
    } finally {
      setBusy(false);
    }
  };
  if (me?.user.role === "viewer") return null;
  const off = sandbox.state === "stopped" || sandbox.state === "failed";
  return (
    <>
      {off ? (
        <Button size="sm" busy={busy} onClick={() => void start()}>
          {t("start")}
        </Button>
      ) : (
        <Button size="sm" onClick={() => setAsked(true)}>
          {t("stop")}
        </Button>
      )}
      <Confirm open={asked} onClose={() => setAsked(false)} title={t("stopTitle")} verb={t("stop")} onConfirm={() => stopSandbox(sandbox.id)}>
        {t("stopWhy")}
      </Confirm>
    </>
  );
}
