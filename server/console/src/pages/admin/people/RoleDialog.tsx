import { type FormEvent, useId, useState } from "react";
import { useTranslation } from "react-i18next";
import { changeRole } from "@/api/people";
import type { Person } from "@/api/schema";
import { Button } from "@/ui/Button";
import { Dialog } from "@/ui/Dialog";
import { ErrorNote } from "@/ui/ErrorNote";
import { RoleField } from "./RoleField";

/** Gives a person another role. It counts at once, also for pages that are open. */
export function RoleDialog({ person, onClose }: { person: Person; onClose: () => void }) {
  const { t } = useTranslation("admin");
  const [role, setRole] = useState(person.role);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const form = useId();
  const save = async (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    setError(undefined);
    try {
      await changeRole(person.id, role);
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
      title={t("roleTitle", { name: person.name })}
      description={t("roleHint")}
      actions={
        <>
          <Button onClick={onClose}>{t("cancel", { ns: "common" })}</Button>
          <Button type="submit" form={form} look="primary" busy={busy} disabled={role === person.role}>
            {t("changeRole")}
          </Button>
        </>
      }
    >
      <form id={form} onSubmit={save}>
        <RoleField role={role} onChange={setRole} service={person.is_service ?? false} />
      </form>
      {error !== undefined && <ErrorNote error={error} className="mt-3" />}
    </Dialog>
  );
}
