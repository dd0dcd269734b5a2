import { useQuery } from "@tanstack/react-query";
import { type FormEvent, useId, useState } from "react";
import { useTranslation } from "react-i18next";
import { namesQuery } from "@/api/people";
import { shareRunner, unshareRunner } from "@/api/runners";
import type { Runner } from "@/api/schema";
import { Button } from "@/ui/Button";
import { Dialog } from "@/ui/Dialog";
import { ErrorNote } from "@/ui/ErrorNote";
import { Input, Switch } from "@/ui/Field";

const EVERYONE = "everyone";

/** Says who may use a runner, and changes it. What is shown is what the server has stored. */
export function Share({ runner, onClose }: { runner: Runner; onClose: () => void }) {
  const { t } = useTranslation("runners");
  const [typed, setTyped] = useState("");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const list = useId();
  const people = useQuery(namesQuery).data ?? [];
  const shared = runner.shared_with ?? [];
  const does = async (request: Promise<unknown>): Promise<boolean> => {
    setBusy(true);
    setError(undefined);
    try {
      await request;
      return true;
    } catch (failure) {
      setError(failure);
      return false;
    } finally {
      setBusy(false);
    }
  };
  const add = async (event: FormEvent) => {
    event.preventDefault();
    const name = typed.trim();
    if (name && (await does(shareRunner(runner.id, name)))) setTyped("");
  };
  const everyone = runner.shared_with_everyone ?? false;
  return (
    <Dialog open onClose={onClose} title={t("shareTitle", { name: runner.name })} description={t("shareWhy")} actions={<Button onClick={onClose}>{t("done", { ns: "common" })}</Button>}>
      <div className="flex items-center gap-3 border-b border-line pb-3">
        <span className="flex-1 text-dense">{t("everyoneMay")}</span>
        <Switch
          checked={everyone}
          disabled={busy}
          label={t("everyoneMay")}
          onChange={(checked) => void does(checked ? shareRunner(runner.id, EVERYONE) : unshareRunner(runner.id, EVERYONE))}
        />
      </div>
      <ul aria-label={t("sharedWithLabel")} className="py-1">
        {shared.map((name) => (
          <li key={name} className="flex items-center gap-2 py-1 text-dense">
            <span className="min-w-0 flex-1 wrap-anywhere" dir="auto">
              {name}
            </span>
            <Button size="sm" disabled={busy} aria-label={t("unsharePerson", { name })} onClick={() => void does(unshareRunner(runner.id, name))}>
              {t("unshare")}
            </Button>
          </li>
        ))}
      </ul>
      <form onSubmit={add} className="flex gap-2">
        <Input aria-label={t("personName")} placeholder={t("personName")} list={list} maxLength={63} value={typed} onChange={(event) => setTyped(event.target.value)} />
        <datalist id={list}>
          {people
            .filter((name) => !shared.includes(name))
            .map((name) => (
              <option key={name} value={name} />
            ))}
        </datalist>
        <Button type="submit" busy={busy} disabled={typed.trim() === ""}>
          {t("share")}
        </Button>
      </form>
      <p className="mt-3 text-meta text-muted">{t("shareEnds")}</p>
      {error !== undefined && <ErrorNote error={error} className="mt-3" />}
    </Dialog>
  );
}
