import { useState } from "react";
import { useTranslation } from "react-i18next";
import { makeFolder, moveEntry } from "@/api/files";
import type { ListedEntry } from "@/api/schema";
import { Field, Input } from "@/ui/Field";
import { FormDialog } from "@/ui/FormDialog";
import { isName, join } from "./path";

/** Asks for the name of a new folder, or for another name of an entry. */
export function NameDialog({ runner, folder, entry, onClose }: { runner: string | undefined; folder: string; entry?: ListedEntry; onClose: () => void }) {
  const { t } = useTranslation("files");
  const [name, setName] = useState(entry?.name ?? "");
  const wrong = name !== "" && !isName(name);
  const save = () => (entry ? moveEntry(runner, join(folder, entry.name), join(folder, name)) : makeFolder(runner, join(folder, name)));
  return (
    <FormDialog
      onClose={onClose}
      title={entry ? t("renameTitle", { name: entry.name }) : t("newFolder")}
      verb={t(entry ? "rename" : "add", { ns: "common" })}
      ready={isName(name)}
      onSubmit={() => save().then(onClose)}
    >
      <Field label={t("name")} error={wrong ? t("wrongName") : undefined}>
        {(control) => <Input {...control} autoFocus spellCheck={false} value={name} onChange={(event) => setName(event.target.value)} />}
      </Field>
    </FormDialog>
  );
}
