import { useEffect, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { type AuditFilter, EXPORT_AT_MOST, exportAudit } from "@/api/audit";
import { saveAs } from "@/state/download";
import { Button } from "@/ui/Button";
import { Dialog } from "@/ui/Dialog";
import { ErrorNote } from "@/ui/ErrorNote";
import { asCsv, asJson } from "./export";

/** Saves the chosen entries to a file. */
export function ExportDialog({ filter, onClose }: { filter: AuditFilter; onClose: () => void }) {
  const { t, i18n } = useTranslation("admin");
  const [count, setCount] = useState<number>();
  const [error, setError] = useState<unknown>();
  const running = useRef<AbortController>(undefined);
  useEffect(() => () => running.current?.abort(), []);
  const save = async (kind: "csv" | "json") => {
    const abort = new AbortController();
    running.current = abort;
    setCount(0);
    setError(undefined);
    try {
      const entries = await exportAudit(filter, setCount, abort.signal);
      if (abort.signal.aborted) return;
      saveAs(`gantry-audit.${kind}`, kind === "csv" ? asCsv(entries) : asJson(entries));
      if (entries.length < EXPORT_AT_MOST) onClose();
      else setError(new Error(t("exportCut", { count: EXPORT_AT_MOST })));
    } catch (failure) {
      if (!abort.signal.aborted) setError(failure);
    } finally {
      setCount(undefined);
    }
  };
  const busy = count !== undefined;
  return (
    <Dialog
      open
      onClose={onClose}
      title={t("exportTitle")}
      description={t("exportHint")}
      actions={
        <>
          <Button onClick={onClose}>{t("cancel", { ns: "common" })}</Button>
          <Button busy={busy} onClick={() => void save("json")}>
            {t("saveJson")}
          </Button>
          <Button look="primary" busy={busy} onClick={() => void save("csv")}>
            {t("saveCsv")}
          </Button>
        </>
      }
    >
      <p role="status" className="text-dense text-muted">
        {busy && t("exported", { count, formatted: count.toLocaleString(i18n.language) })}
      </p>
      {error !== undefined && <ErrorNote error={error} />}
    </Dialog>
  );
}
