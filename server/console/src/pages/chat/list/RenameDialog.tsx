import { type FormEvent, useId, useState } from "react";
import { useTranslation } from "react-i18next";
import { changeSessions } from "@/api/sessions";
import type { Session } from "@/api/schema";
import { Button } from "@/ui/Button";
import { Dialog } from "@/ui/Dialog";
import { ErrorNote } from "@/ui/ErrorNote";
import { Field, Input } from "@/ui/Field";

/** The longest title, as the server counts it. */
const TITLE_LENGTH = 252;

/** Gives a chat another title. */
export function RenameDialog({ session, onClose }: { session: Session; onClose: () => void }) {
  const { t } = useTranslation(["chat", "common"]);
  const [title, setTitle] = useState(session.title);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const form = useId();
  const save = async (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    try {
      await changeSessions([session.id], { title: title.trim() });
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
      title={t("listRenameTitle")}
      actions={
        <>
          <Button onClick={onClose}>{t("common:cancel")}</Button>
          <Button type="submit" form={form} look="primary" busy={busy} disabled={title.trim() === ""}>
            {t("common:save")}
          </Button>
        </>
      }
    >
      <form id={form} onSubmit={save}>
        <Field label={t("listTitleLabel")}>
          {(control) => (
            <Input {...control} autoFocus maxLength={TITLE_LENGTH} value={title} onFocus={(event) => event.target.select()} onChange={(event) => setTitle(event.target.value)} />
          )}
        </Field>
        {error !== undefined && <ErrorNote error={error} title={t("listRenameFailed")} className="mt-3" />}
      </form>
    </Dialog>
  );
}
