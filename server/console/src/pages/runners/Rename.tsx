import { useState } from "react";
import { useTranslation } from "react-i18next";
import { changeRunner } from "@/api/runners";
import type { Runner } from "@/api/schema";
import { Field, Input } from "@/ui/Field";
import { FormDialog } from "@/ui/FormDialog";
import { say } from "@/ui/Toast";
import { isName, NAME_AT_MOST } from "./name";

/** Gives a runner another name. */
export function Rename({ runner, onClose }: { runner: Runner; onClose: () => void }) {
  const { t } = useTranslation("runners");
  const [name, setName] = useState(runner.name);
  const wrong = name !== "" && !isName(name);
  const rename = async () => {
    await changeRunner(runner.id, { name });
    say(t("renameDone", { name }));
    onClose();
  };
  return (
    <FormDialog
      onClose={onClose}
      title={t("renameTitle", { name: runner.name })}
      description={t("renameWhy")}
      verb={t("rename", { ns: "common" })}
      ready={isName(name) && name !== runner.name}
      onSubmit={rename}
    >
      <Field label={t("name")} hint={t("nameHint")} error={wrong ? t("nameWrong") : undefined}>
        {(control) => <Input {...control} autoFocus autoCapitalize="none" spellCheck={false} maxLength={NAME_AT_MOST} value={name} onChange={(event) => setName(event.target.value)} />}
      </Field>
    </FormDialog>
  );
}
