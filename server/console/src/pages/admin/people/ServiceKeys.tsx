import { useInfiniteQuery } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { useTranslation } from "react-i18next";
import { endKey } from "@/api/keys";
import { addServiceKey, serviceKeysQuery } from "@/api/people";
import type { CreatedKey, Key, Person } from "@/api/schema";
import { Button } from "@/ui/Button";
import { Confirm } from "@/ui/Confirm";
import { CopyLine } from "@/ui/CopyLine";
import { Dialog } from "@/ui/Dialog";
import { ErrorNote } from "@/ui/ErrorNote";
import { Field, Input } from "@/ui/Field";
import { Skeleton } from "@/ui/Skeleton";
import { Ago } from "@/ui/Time";
import { useIdempotencyKey } from "@/ui/useIdempotencyKey";

/** The keys of a service account: its programs show them, and each is shown here once. */
export function ServiceKeys({ service, onClose }: { service: Person; onClose: () => void }) {
  const { t } = useTranslation(["admin", "settings", "common"]);
  const keys = useInfiniteQuery(serviceKeysQuery(service.id));
  const listed = keys.data?.pages.flatMap((page) => page.keys);
  const [name, setName] = useState("");
  const key = useIdempotencyKey(name);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const [made, setMade] = useState<CreatedKey>();
  const [leaving, setLeaving] = useState<Key>();
  const add = async (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    setError(undefined);
    try {
      setMade(await addServiceKey(service.id, name.trim(), key));
      setName("");
    } catch (failure) {
      setError(failure);
    } finally {
      setBusy(false);
    }
  };
  const end = async (key: Key) => {
    await endKey(key.id);
    if (made?.entry.id === key.id) setMade(undefined);
  };
  return (
    <Dialog open dismissable={!made} onClose={onClose} title={t("keysTitle", { name: service.name })} description={t("keysHint")}>
      {made && (
        <div className="mb-4 rounded-card border border-accent p-3">
          <p className="mb-2 text-dense">{t("keyOnce", { name: made.entry.name })}</p>
          <CopyLine text={made.key} />
        </div>
      )}
      {keys.isPending && <Skeleton rows={2} />}
      {keys.isError && <ErrorNote error={keys.error} onRetry={() => void keys.refetch()} />}
      <ul className="divide-y divide-line">
        {listed?.map((key) => (
          <li key={key.id} className="flex items-center gap-3 py-2">
            <div className="min-w-0 flex-1">
              <p className="truncate font-medium">{key.name}</p>
              <p className="text-meta text-muted">
                {(key.scopes ?? []).join(t("common:listComma"))} · {key.last_used_at ? <Ago at={key.last_used_at} /> : t("neverUsed")}
              </p>
            </div>
            <Button size="sm" aria-label={t("settings:removeNamed", { name: key.name })} onClick={() => setLeaving(key)}>
              {t("common:remove")}
            </Button>
          </li>
        ))}
      </ul>
      {keys.hasNextPage && (
        <Button size="sm" className="mt-2" busy={keys.isFetchingNextPage} onClick={() => void keys.fetchNextPage()}>
          {t("common:showMore")}
        </Button>
      )}
      {listed?.length === 0 && <p className="text-dense text-muted">{t("noKeys")}</p>}
      <form onSubmit={add} className="mt-4 flex items-end gap-2">
        <Field label={t("newKey")} className="flex-1">
          {(control) => <Input {...control} required maxLength={63} value={name} onChange={(event) => setName(event.target.value)} />}
        </Field>
        <Button type="submit" busy={busy}>
          {t("makeKey")}
        </Button>
      </form>
      {error !== undefined && <ErrorNote error={error} className="mt-3" />}
      {leaving && (
        <Confirm open danger title={t("settings:removeKeyTitle", { name: leaving.name })} verb={t("settings:removeKey")} onClose={() => setLeaving(undefined)} onConfirm={() => end(leaving)}>
          {t("settings:removeKeyWhy")}
        </Confirm>
      )}
    </Dialog>
  );
}
