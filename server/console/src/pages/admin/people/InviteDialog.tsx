import { type FormEvent, useId, useState } from "react";
import { useTranslation } from "react-i18next";
import { invite } from "@/api/people";
import type { Invitation, RoleName } from "@/api/schema";
import { duration } from "@/format/time";
import { Button } from "@/ui/Button";
import { CopyLine } from "@/ui/CopyLine";
import { Dialog } from "@/ui/Dialog";
import { ErrorNote } from "@/ui/ErrorNote";
import { Field, Input } from "@/ui/Field";
import { ReachNote } from "@/ui/ReachNote";
import { useCountdown } from "@/ui/Time";
import { RoleField } from "./RoleField";

/** Invites a person: a name and a role first, then the link, which is shown once. */
export function InviteDialog({ name: given, onClose }: { name: string; onClose: () => void }) {
  const { t } = useTranslation("admin");
  const [name, setName] = useState(given);
  const [role, setRole] = useState<RoleName>("member");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const [made, setMade] = useState<Invitation>();
  const form = useId();
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    setError(undefined);
    try {
      setMade(await invite(name.trim(), role));
    } catch (failure) {
      setError(failure);
    } finally {
      setBusy(false);
    }
  };
  if (made) return <Link invitation={made} onClose={onClose} />;
  return (
    <Dialog
      open
      onClose={onClose}
      title={t("inviteTitle")}
      description={t("inviteHint")}
      actions={
        <>
          <Button onClick={onClose}>{t("cancel", { ns: "common" })}</Button>
          <Button type="submit" form={form} look="primary" busy={busy}>
            {t("makeLink")}
          </Button>
        </>
      }
    >
      <form id={form} onSubmit={submit} className="flex flex-col gap-4">
        <Field label={t("name")} hint={t("nameHint")}>
          {(control) => <Input {...control} autoFocus={!given} required maxLength={32} pattern="[A-Za-z]([A-Za-z0-9\-]*[A-Za-z0-9])?" autoCapitalize="none" spellCheck={false} value={name} onChange={(event) => setName(event.target.value)} />}
        </Field>
        <RoleField role={role} onChange={setRole} />
        {error !== undefined && <ErrorNote error={error} />}
      </form>
    </Dialog>
  );
}

function Link({ invitation, onClose }: { invitation: Invitation; onClose: () => void }) {
  const { t } = useTranslation("admin");
  const left = useCountdown(invitation.expires_at);
  // Behind the `#`, so that no server and no log sees the code.
  const link = `${location.origin}/sign-in#code=${encodeURIComponent(invitation.code)}`;
  return (
    <Dialog
      open
      dismissable={false}
      onClose={onClose}
      title={t("linkTitle", { name: invitation.person.name })}
      description={t("linkHint")}
      actions={
        <Button look="primary" onClick={onClose}>
          {t("done", { ns: "common" })}
        </Button>
      }
    >
      <ReachNote className="mb-3" />
      <CopyLine text={link} label={t("copyLink")} />
      <p className="mt-2 text-meta text-muted">{left > 0 ? t("linkExpires", { time: duration(left) }) : t("linkExpired")}</p>
      <details className="mt-4 text-dense">
        <summary className="text-muted">{t("forTerminal")}</summary>
        <div className="mt-2 flex flex-col gap-2">
          <CopyLine text={`gantry login --server ${location.origin}`} />
          <CopyLine text={invitation.code} />
        </div>
      </details>
    </Dialog>
  );
}
