import { useState } from "react";
import { useTranslation } from "react-i18next";
import { FormDialog } from "@/ui/FormDialog";

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
  const { t } = useTranslation("transcript");
  const [choice, setChoice] = useState<RewindChoice>("conversation");
  return (
    <FormDialog
      open={open}
      onClose={onClose}
      title={t("rewindTitle")}
      description={t("rewindHint")}
      verb={choice === "files" ? t("rewindFilesVerb") : t("rewindVerb")}
      failed={t("rewindFailed")}
      onSubmit={() => onChoose(choice).then(onClose)}
    >
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
    </FormDialog>
  );
}
