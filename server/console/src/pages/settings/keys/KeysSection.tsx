import { Plus, Trash2 } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { endKey } from "@/api/keys";
import type { Key } from "@/api/schema";
import { Badge } from "@/ui/Badge";
import { Button, IconButton } from "@/ui/Button";
import { Confirm } from "@/ui/Confirm";
import { ErrorNote } from "@/ui/ErrorNote";
import { Section } from "@/ui/Page";
import { Skeleton } from "@/ui/Skeleton";
import { Ago } from "@/ui/Time";
import { EmptyRow } from "../rows/EmptyRow";
import { Dots, Rows } from "../rows/Row";
import { AddKey } from "./AddKey";
import { Expiry } from "./Expiry";
import { endsWith } from "./key-form";
import { useKeys } from "./useKeys";

/** The person's API keys. */
export function KeysSection() {
  const { t } = useTranslation("settings");
  const keys = useKeys("keys");
  const [adding, setAdding] = useState(false);
  const [leaving, setLeaving] = useState<Key>();
  if (keys.error && !keys.data) return <ErrorNote error={keys.error} onRetry={() => void keys.refetch()} />;
  if (!keys.shown) return <Skeleton rows={3} />;
  const add = (
    <Button icon={Plus} size="sm" onClick={() => setAdding(true)}>
      {t("addKey")}
    </Button>
  );
  const others = leaving ? endsWith(leaving, keys.all ?? []) : [];
  return (
    <Section title={t("navKeys")} note={t("keysNote")} actions={keys.shown.length > 0 && add}>
      {keys.shown.length === 0 ? (
        <EmptyRow title={t("noKeys")} action={add}>
          {t("noKeysWhy")}
        </EmptyRow>
      ) : (
        <Rows>
          {keys.shown.map((key) => (
            <KeyRow key={key.id} entry={key} onRemove={() => setLeaving(key)} />
          ))}
        </Rows>
      )}
      {keys.hasNextPage && (
        <Button className="mt-3" busy={keys.isFetchingNextPage} onClick={() => void keys.fetchNextPage()}>
          {t("showMore", { ns: "common" })}
        </Button>
      )}
      {adding && <AddKey onClose={() => setAdding(false)} />}
      {leaving && (
        <Confirm open danger title={t("removeKeyTitle", { name: leaving.name })} verb={t("removeKey")} onClose={() => setLeaving(undefined)} onConfirm={() => endKey(leaving.id)}>
          <p>{t("removeKeyWhy")}</p>
          {others.length > 0 && (
            <>
              <p className="mt-2">{t("removeKeyOthers", { count: others.length })}</p>
              <ul className="mt-1 list-disc pl-5">
                {others.map((other) => (
                  <li key={other.id} className="wrap-anywhere">
                    {other.name}
                  </li>
                ))}
              </ul>
            </>
          )}
        </Confirm>
      )}
    </Section>
  );
}

function KeyRow({ entry, onRemove }: { entry: Key; onRemove: () => void }) {
  const { t } = useTranslation("settings");
  return (
    <div className="flex items-center gap-3 px-4 py-2.5">
      <div className="min-w-0 flex-1">
        <p className="flex flex-wrap items-center gap-x-2 gap-y-1">
          <span className="min-w-0 font-medium wrap-anywhere">{entry.name}</span>
          {entry.scopes?.map((scope) => (
            <Badge key={scope}>{scope}</Badge>
          ))}
          {entry.is_this && <Badge tone="accent">{t("usedNow")}</Badge>}
        </p>
        <Dots className="text-meta text-faint">
          <span>
            {t("made")} <Ago at={entry.created_at} />
          </span>
          {entry.last_used_at ? (
            <span>
              {t("lastUsed")} <Ago at={entry.last_used_at} />
            </span>
          ) : (
            t("neverUsed")
          )}
          {entry.last_address && t("fromAddress", { address: entry.last_address })}
          {entry.from && t("onlyFrom", { addresses: entry.from })}
          <Expiry at={entry.expires_at} />
        </Dots>
      </div>
      <IconButton size="sm" icon={Trash2} label={t("removeNamed", { name: entry.name })} onClick={onRemove} />
    </div>
  );
}
