import { type FormEvent, useId, useState } from "react";
import { useTranslation } from "react-i18next";
import { changeRunner } from "@/api/runners";
import type { Runner } from "@/api/schema";
import { Button } from "@/ui/Button";
import { Dialog } from "@/ui/Dialog";
import { ErrorNote } from "@/ui/ErrorNote";
import { Field, Input } from "@/ui/Field";
import { say } from "@/ui/Toast";
import { isName, NAME_AT_MOST } from "./name";

/** Gives a runner another name. */
export function Rename({ runner, onClose }: { runner: Runner; onClose: () => void }) {
  const { t } = useTranslation("runners");
  const form = useId();
  const [name, setName] = useState(runner.name);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const wrong = name !== "" && !isName(name);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    if (!isName(name)) return;
    setBusy(true);
    setError(undefined);
    try {
      await changeRunner(runner.id, { name });
      say(t("renameDone", { name }));
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
      title={t("renameTitle", { name: runner.name })}
      description={t("renameWhy")}
      actions={
        <>
          <Button onClick={onClose}>{t("cancel", { ns: "common" })}</Button>
          <Button type="submit" form={form} look="primary" busy={busy} disabled={!isName(name) || name === runner.name}>
            {t("rename", { ns: "common" })}
          </Button>
        </>
      }
    >
      <form id={form} onSubmit={submit}>
        <Field label={t("name")} hint={t("nameHint")} error={wrong ? t("nameWrong") : undefined}>
          {(control) => <Input {...control} autoFocus autoCapitalize="none" spellCheck={false} maxLength={NAME_AT_MOST} value={name} onChange={(event) => setName(event.target.value)} />}
        </Field>
      </form>
      {error !== undefined && <ErrorNote error={error} className="mt-3" />}
    </Dialog>
  );
}
