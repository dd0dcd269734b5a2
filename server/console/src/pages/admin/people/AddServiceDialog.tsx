import { type FormEvent, useId, useState } from "react";
import { useTranslation } from "react-i18next";
import { addService } from "@/api/people";
import type { RoleName } from "@/api/schema";
import { Button } from "@/ui/Button";
import { Dialog } from "@/ui/Dialog";
import { ErrorNote } from "@/ui/ErrorNote";
import { Field, Input } from "@/ui/Field";
import { RoleField } from "./RoleField";

/** Adds a service account. Its keys are made afterwards, in its row. */
export function AddServiceDialog({ onClose }: { onClose: () => void }) {
  const { t } = useTranslation("admin");
  const [name, setName] = useState("");
  const [role, setRole] = useState<RoleName>("member");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const form = useId();
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    setError(undefined);
    try {
      await addService(name.trim(), role);
      onClose();
    } catch (failure) {
      setError(failure);
      setBusy(false);
    }
  };
  return (
    <Dialog
      open
      onClose={onClose}
      title={t("addServiceTitle")}
      description={t("servicesHint")}
      actions={
        <>
          <Button onClick={onClose}>{t("cancel", { ns: "common" })}</Button>
          <Button type="submit" form={form} look="primary" busy={busy}>
            {t("addService")}
          </Button>
        </>
      }
    >
      <form id={form} onSubmit={submit} className="flex flex-col gap-4">
        <Field label={t("name")} hint={t("nameHint")}>
          {(control) => <Input {...control} autoFocus required maxLength={32} pattern="[A-Za-z]([A-Za-z0-9\-]*[A-Za-z0-9])?" autoCapitalize="none" spellCheck={false} value={name} onChange={(event) => setName(event.target.value)} />}
        </Field>
        <RoleField service role={role} onChange={setRole} />
        {error !== undefined && <ErrorNote error={error} />}
      </form>
    </Dialog>
  );
}
