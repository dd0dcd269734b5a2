import { useState } from "react";
import { useTranslation } from "react-i18next";
import { changeSessions } from "@/api/sessions";
import type { Session } from "@/api/schema";
import { Field, Input } from "@/ui/Field";
import { FormDialog } from "@/ui/FormDialog";

/** The longest title, as the server counts it. */
const TITLE_LENGTH = 252;

/** Gives a chat another title. */
export function RenameDialog({ session, onClose }: { session: Session; onClose: () => void }) {
  const { t } = useTranslation(["chat", "common"]);
  const [title, setTitle] = useState(session.title);
  return (
    <FormDialog
      onClose={onClose}
      title={t("listRenameTitle")}
      verb={t("common:save")}
      ready={title.trim() !== ""}
      failed={t("listRenameFailed")}
      onSubmit={() => changeSessions([session.id], { title: title.trim() }).then(onClose)}
    >
      <Field label={t("listTitleLabel")}>
        {(control) => (
          <Input {...control} autoFocus maxLength={TITLE_LENGTH} value={title} onFocus={(event) => event.target.select()} onChange={(event) => setTitle(event.target.value)} />
        )}
      </Field>
    </FormDialog>
  );
}
