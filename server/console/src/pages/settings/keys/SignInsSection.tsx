import { Monitor, SquareTerminal } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { endKey } from "@/api/keys";
import type { Key } from "@/api/schema";
import { localeOf } from "@/format/locale";
import { signOut } from "@/frame/account-actions";
import { Badge } from "@/ui/Badge";
import { Button } from "@/ui/Button";
import { Confirm } from "@/ui/Confirm";
import { ErrorNote } from "@/ui/ErrorNote";
import { Section } from "@/ui/Page";
import { Skeleton } from "@/ui/Skeleton";
import { Ago } from "@/ui/Time";
import { Dots, Rows } from "../rows/Row";
import { Expiry } from "./Expiry";
import { useKeys } from "./useKeys";

/** Where the person is signed in: browsers and terminals. This one is the first. */
export function SignInsSection() {
  const { t } = useTranslation("settings");
  const signIns = useKeys("sign-ins");
  const [leaving, setLeaving] = useState<Key>();
  if (signIns.error && !signIns.data) return <ErrorNote error={signIns.error} onRetry={() => void signIns.refetch()} />;
  if (!signIns.shown) return <Skeleton rows={3} />;
  const shown = signIns.shown.toSorted((a, b) => Number(b.is_this ?? false) - Number(a.is_this ?? false));
  return (
    <Section title={t("navSignIns")} note={t("signInsNote")}>
      <Rows>
        {shown.map((signIn) => (
          <SignInRow key={signIn.id} entry={signIn} onEnd={() => setLeaving(signIn)} />
        ))}
      </Rows>
      {signIns.hasNextPage && (
        <Button className="mt-3" busy={signIns.isFetchingNextPage} onClick={() => void signIns.fetchNextPage()}>
          {t("showMore", { ns: "common" })}
        </Button>
      )}
      {leaving && (
        <Confirm
          open
          danger
          title={t(leaving.is_this ? "endThisTitle" : "endSignInTitle", { name: leaving.name })}
          verb={leaving.is_this ? t("signOut", { ns: "frame" }) : t("endSignIn")}
          onClose={() => setLeaving(undefined)}
          onConfirm={() => (leaving.is_this ? signOut() : endKey(leaving.id))}
        >
          {t(leaving.is_this ? "endThisWhy" : "endSignInWhy")}
        </Confirm>
      )}
    </Section>
  );
}

/** A day and a time to the minute. */
function soon(at: string, language: string): string {
  return new Intl.DateTimeFormat(localeOf(language), { dateStyle: "medium", timeStyle: "short" }).format(new Date(at));
}

function SignInRow({ entry, onEnd }: { entry: Key; onEnd: () => void }) {
  const { t, i18n } = useTranslation("settings");
  const browser = entry.kind === "browser";
  const Icon = browser ? Monitor : SquareTerminal;
  return (
    <div className="flex items-center gap-3 px-4 py-2.5">
      <Icon aria-hidden className="size-5 shrink-0 text-muted" strokeWidth={1.75} />
      <div className="min-w-0 flex-1">
        <p className="flex flex-wrap items-center gap-x-2">
          <span className="min-w-0 font-medium wrap-anywhere">{entry.name}</span>
          {entry.is_this && <Badge tone="accent">{t("thisOne")}</Badge>}
        </p>
        <Dots className="text-meta text-faint">
          {t(browser ? "browser" : "terminal")}
          <span>
            {t("since")} <Ago at={entry.created_at} />
          </span>
          {entry.last_used_at && (
            <span>
              {t("lastUsed")} <Ago at={entry.last_used_at} />
            </span>
          )}
          {entry.last_address && t("fromAddress", { address: entry.last_address })}
          {browser && entry.expires_at ? t("endsUnused", { time: soon(entry.expires_at, i18n.language) }) : <Expiry at={entry.expires_at} />}
        </Dots>
      </div>
      <Button size="sm" aria-label={t(entry.is_this ? "endThisNamed" : "endNamed", { name: entry.name })} onClick={onEnd}>
        {entry.is_this ? t("signOut", { ns: "frame" }) : t("endSignIn")}
      </Button>
    </div>
  );
}
