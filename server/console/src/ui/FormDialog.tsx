import { type FormEvent, type ReactNode, useId, useState } from "react";
import { useTranslation } from "react-i18next";
import { Button } from "./Button";
import { Dialog } from "./Dialog";
import { ErrorNote } from "./ErrorNote";

interface FormDialogProps {
  open?: boolean;
  onClose: () => void;
  title: string;
  description?: ReactNode;
  children?: ReactNode;
  /** The verb on the button. */
  verb: string;
  danger?: boolean;
  /** False as long as there is nothing to send. */
  ready?: boolean;
  /** What failed, above the reason. */
  failed?: string;
  /** Does it. The dialog shows why if it fails; the caller closes it. */
  onSubmit: () => Promise<unknown>;
}

/** A dialog with one thing to do. */
export function FormDialog({ open = true, onClose, title, description, children, verb, danger, ready = true, failed, onSubmit }: FormDialogProps) {
  const { t } = useTranslation("common");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const form = useId();
  const close = () => {
    setError(undefined);
    onClose();
  };
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    if (!ready) return;
    setBusy(true);
    setError(undefined);
    try {
      await onSubmit();
    } catch (failure) {
      setError(failure);
    } finally {
      setBusy(false);
    }
  };
  return (
    <Dialog
      open={open}
      onClose={close}
      title={title}
      description={description}
      actions={
        <>
          <Button onClick={close}>{t("cancel")}</Button>
          <Button type="submit" form={form} look={danger ? "danger" : "primary"} busy={busy} disabled={!ready}>
            {verb}
          </Button>
        </>
      }
    >
      <form id={form} onSubmit={(event) => void submit(event)}>
        {children}
      </form>
      {error !== undefined && <ErrorNote error={error} {...(failed ? { title: failed } : {})} className="mt-3" />}
    </Dialog>
  );
}
