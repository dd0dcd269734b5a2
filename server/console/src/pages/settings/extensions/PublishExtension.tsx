import { useQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import { putExtension, wholeExtensionQuery } from "@/api/extensions";
import type { Extension } from "@/api/schema";
import { ErrorNote } from "@/ui/ErrorNote";
import { FormDialog } from "@/ui/FormDialog";
import { Skeleton } from "@/ui/Skeleton";
import { Changes, changesOf } from "./Changes";
import { unpacked } from "./source";

/** Gives the person's own extension to everyone, once the person has seen what that changes. */
export function PublishExtension({ extension, all, onClose }: { extension: Extension; all: readonly Extension[]; onClose: () => void }) {
  const { t } = useTranslation("settings");
  const everyones = all.find((other) => other.layer === "tenant" && other.kind === extension.kind && other.name === extension.name);
  const whole = useQuery(wholeExtensionQuery(extension));
  const before = useQuery({ ...wholeExtensionQuery(everyones ?? extension), enabled: everyones !== undefined });
  const failed = whole.error ?? before.error;
  const changes = whole.data && before.data && everyones ? changesOf(before.data, { text: whole.data.text, files: unpacked(whole.data.packed) }) : undefined;
  const publish = async () => {
    if (!whole.data) return;
    const { kind, name, text, packed, source } = whole.data;
    await putExtension({ kind, name, text, source, for_everyone: true, ...(packed ? { packed } : {}), ...(everyones ? { replaces: everyones.digest } : {}) });
    onClose();
  };
  return (
    <FormDialog
      title={t("publishTitle", { name: extension.name })}
      description={t(everyones ? "publishReplaces" : "publishWhy")}
      verb={t("publishVerb")}
      ready={whole.data !== undefined && (everyones === undefined || before.data !== undefined)}
      failed={t("notSaved")}
      onClose={onClose}
      onSubmit={publish}
    >
      {failed ? <ErrorNote error={failed} /> : whole.isPending || (everyones && before.isPending) ? <Skeleton rows={2} /> : null}
      {changes && (changes.length > 0 ? <Changes changes={changes} /> : <p className="text-dense text-muted">{t("noChange")}</p>)}
    </FormDialog>
  );
}
