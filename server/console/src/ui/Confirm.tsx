import { type ReactNode, useState } from "react";
import { useTranslation } from "react-i18next";
import { Button } from "./Button";
import { Dialog } from "./Dialog";
import { ErrorNote } from "./ErrorNote";

interface ConfirmProps {
  open: boolean;
  onClose: () => void;
  title: string;
  /** What will happen, and what will not come back. */
  children: ReactNode;
  /** The verb on the button. */
  verb: string;
  danger?: boolean;
  /** Does it. The dialog closes once it is done, and shows why if it fails. */
  onConfirm: () => Promise<unknown>;
}

/** Asks before something that cannot be taken back. */
export function Confirm({ open, onClose, title, children, verb, danger, onConfirm }: ConfirmProps) {
  const { t } = useTranslation("common");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const close = () => {
    setError(undefined);
    onClose();
  };
  const confirm = async () => {
    setBusy(true);
    setError(undefined);
    try {
      await onConfirm();
      close();
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
      actions={
        <>
          <Button onClick={close}>{t("cancel")}</Button>
          <Button look={danger ? "danger" : "primary"} busy={busy} onClick={confirm}>
            {verb}
          </Button>
        </>
      }
    >
      <div className="text-body text-muted">{children}</div>
      {error !== undefined && <ErrorNote error={error} className="mt-3" />}
    </Dialog>
  );
}
