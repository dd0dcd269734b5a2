import { type FormEvent, useId, useState } from "react";
import { useTranslation } from "react-i18next";
import { Button } from "@/ui/Button";
import { Dialog } from "@/ui/Dialog";
import { ErrorNote } from "@/ui/ErrorNote";

/** The parts of a session that go back to before a message. */
export type RewindChoice = "conversation" | "both" | "files";

const CHOICES: readonly RewindChoice[] = ["conversation", "both", "files"];

interface RewindDialogProps {
  open: boolean;
  onClose: () => void;
  /** Begins the edit, or puts the files back. The dialog shows why if it fails. */
  onChoose: (choice: RewindChoice) => Promise<unknown>;
}

/** Asks what goes back to before a message that is edited. */
export function RewindDialog({ open, onClose, onChoose }: RewindDialogProps) {
  const { t } = useTranslation(["transcript", "common"]);
  const [choice, setChoice] = useState<RewindChoice>("conversation");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const close = () => {
    setError(undefined);
    onClose();
  };
  const form = useId();
  const choose = async (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    setError(undefined);
    try {
      await onChoose(choice);
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
      title={t("rewindTitle")}
      description={t("rewindHint")}
      actions={
        <>
          <Button onClick={close}>{t("common:cancel")}</Button>
          <Button type="submit" form={form} look="primary" busy={busy}>
            {choice === "files" ? t("rewindFilesVerb") : t("rewindVerb")}
          </Button>
        </>
      }
    >
      <form id={form} onSubmit={choose}>
        <fieldset className="flex flex-col gap-2">
          <legend className="sr-only">{t("rewindTitle")}</legend>
          {CHOICES.map((one) => (
            <label key={one} className="flex cursor-pointer items-start gap-3 rounded-control border border-line p-3 has-checked:border-accent has-checked:bg-accent-soft">
              <input type="radio" name="rewind" checked={choice === one} onChange={() => setChoice(one)} className="mt-1 accent-(--accent)" />
              <span>
                <span className="block font-medium">{t(`rewind_${one}`)}</span>
                <span className="block text-dense text-muted">{t(`rewind_${one}_hint`)}</span>
              </span>
            </label>
          ))}
        </fieldset>
      </form>
      {error !== undefined && <ErrorNote error={error} title={t("rewindFailed")} className="mt-3" />}
    </Dialog>
  );
}
