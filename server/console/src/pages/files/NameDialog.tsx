import { type FormEvent, useId, useState } from "react";
import { useTranslation } from "react-i18next";
import { makeFolder, moveEntry } from "@/api/files";
import type { ListedEntry } from "@/api/schema";
import { Button } from "@/ui/Button";
import { Dialog } from "@/ui/Dialog";
import { ErrorNote } from "@/ui/ErrorNote";
import { Field, Input } from "@/ui/Field";
import { isName, join } from "./path";

/** Asks for the name of a new folder, or for another name of an entry. */
export function NameDialog({ runner, folder, entry, onClose }: { runner: string | undefined; folder: string; entry?: ListedEntry; onClose: () => void }) {
  const { t } = useTranslation("files");
  const [name, setName] = useState(entry?.name ?? "");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const form = useId();
  const wrong = name !== "" && !isName(name);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    if (!isName(name)) return;
    setBusy(true);
    setError(undefined);
    try {
      await (entry ? moveEntry(runner, join(folder, entry.name), join(folder, name)) : makeFolder(runner, join(folder, name)));
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
      title={entry ? t("renameTitle", { name: entry.name }) : t("newFolder")}
      actions={
        <>
          <Button onClick={onClose}>{t("cancel", { ns: "common" })}</Button>
          <Button type="submit" form={form} look="primary" busy={busy} disabled={!isName(name)}>
            {t(entry ? "rename" : "add", { ns: "common" })}
          </Button>
        </>
      }
    >
      <form id={form} onSubmit={submit}>
        <Field label={t("name")} error={wrong ? t("wrongName") : undefined}>
          {(control) => <Input {...control} autoFocus spellCheck={false} value={name} onChange={(event) => setName(event.target.value)} />}
        </Field>
        {error !== undefined && <ErrorNote error={error} className="mt-3" />}
      </form>
    </Dialog>
  );
}
