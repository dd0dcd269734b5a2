import { type FormEvent, useId, useState } from "react";
import { useTranslation } from "react-i18next";
import { createSandbox } from "@/api/sandboxes";
import type { Runner } from "@/api/schema";
import { Button } from "@/ui/Button";
import { Dialog } from "@/ui/Dialog";
import { ErrorNote } from "@/ui/ErrorNote";
import { Field, Select } from "@/ui/Field";
import { say } from "@/ui/Toast";

interface MakeProps {
  /** The runners that make sandboxes. */
  pools: Runner[];
  onClose: () => void;
}

/** Makes the person's own sandbox on a pool. */
export function MakeDialog({ pools, onClose }: MakeProps) {
  const { t } = useTranslation("sandboxes");
  const id = useId();
  const [runner, setRunner] = useState(pools[0]?.id ?? "");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const chosen = pools.find((pool) => pool.id === runner);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    setError(undefined);
    try {
      await createSandbox(runner);
      say(t("made", { runner: chosen?.name ?? "" }));
      onClose();
    } catch (failure) {
      setError(failure);
    } finally {
      setBusy(false);
    }
  };
  return (
    <Dialog
      open
      onClose={onClose}
      title={t("makeTitle")}
      description={t("makeWhy")}
      actions={
        <>
          <Button onClick={onClose}>{t("cancel", { ns: "common" })}</Button>
          <Button type="submit" form={id} look="primary" busy={busy} disabled={!chosen}>
            {t("make")}
          </Button>
        </>
      }
    >
      <form id={id} onSubmit={submit}>
        <Field label={t("runner")} hint={chosen?.pool?.problem ?? (chosen && !chosen.online ? t("runnerAway") : undefined)}>
          {(control) => (
            <Select {...control} value={runner} onChange={(event) => setRunner(event.target.value)}>
              {pools.map((pool) => (
                <option key={pool.id} value={pool.id}>
                  {pool.online ? pool.name : t("away", { name: pool.name })}
                </option>
              ))}
            </Select>
          )}
        </Field>
      </form>
      {error !== undefined && <ErrorNote error={error} className="mt-3" />}
    </Dialog>
  );
}
