import { type FormEvent, useState } from "react";
import { useTranslation } from "react-i18next";
import { idempotencyKey } from "@/api/client";
import { endLinks, shareSession } from "@/api/sessions";
import type { Session, SessionLink } from "@/api/schema";
import { moment } from "@/format/time";
import { Button } from "@/ui/Button";
import { CopyLine } from "@/ui/CopyLine";
import { Dialog } from "@/ui/Dialog";
import { ErrorNote } from "@/ui/ErrorNote";
import { Field, Select } from "@/ui/Field";
import { ReachNote } from "@/ui/ReachNote";

const HOUR_S = 3600;
const DAY_S = 24 * HOUR_S;

/** How long a link may be good for, in seconds; 0 for no end. */
const TERMS = [
  [HOUR_S, "listShareHour"],
  [DAY_S, "listShareDay"],
  [7 * DAY_S, "listShareWeek"],
  [30 * DAY_S, "listShareMonth"],
  [0, "listShareForever"],
] as const;

/** Makes a link by which anybody can read a chat, and ends those that were made. */
export function ShareDialog({ session, onClose }: { session: Session; onClose: () => void }) {
  const { t, i18n } = useTranslation(["chat", "common"]);
  const [validForS, setValidForS] = useState<number>(7 * DAY_S);
  const [link, setLink] = useState<SessionLink>();
  const [open, setOpen] = useState(session.links ?? 0);
  const [key, setKey] = useState(idempotencyKey);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const attempt = async (what: () => Promise<void>) => {
    setBusy(true);
    setError(undefined);
    try {
      await what();
    } catch (failure) {
      setError(failure);
    } finally {
      setBusy(false);
    }
  };
  const make = (event: FormEvent) => {
    event.preventDefault();
    void attempt(async () => {
      setLink(await shareSession(session.id, validForS || undefined, key));
      setKey(idempotencyKey());
      setOpen((links) => links + 1);
    });
  };
  const end = () =>
    attempt(async () => {
      await endLinks(session.id);
      setLink(undefined);
      setOpen(0);
    });
  const until = link?.expires_at;
  return (
    <Dialog open onClose={onClose} title={t("listShareTitle")} description={t("listShareWho")} dismissable={!link}>
      <div className="flex flex-col gap-4">
        {link ? (
          <div>
            <ReachNote className="mb-3" />
            <CopyLine text={location.origin + link.path} label={t("listShareCopy")} />
            <p className="mt-1 text-meta text-muted">
              {until ? t("listShareUntil", { time: moment(until, i18n.language) }) : t("listShareNoEnd")} {t("listShareOnce")}
            </p>
          </div>
        ) : (
          <form onSubmit={make} className="flex items-end gap-2">
            <Field label={t("listShareTerm")} className="flex-1">
              {(control) => (
                <Select
                  {...control}
                  value={validForS}
                  onChange={(event) => {
                    setValidForS(Number(event.target.value));
                    setKey(idempotencyKey());
                  }}
                >
                  {TERMS.map(([seconds, words]) => (
                    <option key={seconds} value={seconds}>
                      {t(words)}
                    </option>
                  ))}
                </Select>
              )}
            </Field>
            <Button type="submit" look="primary" busy={busy}>
              {t("listShareMake")}
            </Button>
          </form>
        )}
        {error !== undefined && <ErrorNote error={error} />}
        {open > 0 && (
          <div className="flex items-center justify-between gap-3 border-t border-line pt-3">
            <p className="text-dense text-muted">{t("listShareOpen", { count: open })}</p>
            <Button size="sm" busy={busy} onClick={end}>
              {t("listShareEnd", { count: open })}
            </Button>
          </div>
        )}
      </div>
    </Dialog>
  );
}
