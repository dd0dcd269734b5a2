import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { endJoinToken, joinTokensQuery } from "@/api/join-tokens";
import type { ListedJoinToken } from "@/api/schema";
import { Button } from "@/ui/Button";
import { ErrorNote } from "@/ui/ErrorNote";
import { say, sayFailed } from "@/ui/Toast";
import { Expires } from "./Expires";

/** The other join tokens with which machines can still enrol. Each can be ended. */
export function OpenTokens({ except }: { except: string | undefined }) {
  const { t } = useTranslation("runners");
  const { data, error, refetch } = useQuery(joinTokensQuery);
  const tokens = data?.filter((token) => token.id !== except) ?? [];
  if (error) return <ErrorNote error={error} onRetry={() => void refetch()} className="mt-6" />;
  if (tokens.length === 0) return null;
  return (
    <section className="mt-6 border-t border-line pt-4">
      <h3 className="text-dense font-semibold">{t("openTokens")}</h3>
      <p className="text-meta text-muted">{t("openTokensHint")}</p>
      <ul className="mt-1">
        {tokens.map((token) => (
          <Row key={token.id} token={token} />
        ))}
      </ul>
    </section>
  );
}

function Row({ token }: { token: ListedJoinToken }) {
  const { t } = useTranslation("runners");
  const [busy, setBusy] = useState(false);
  const name = token.name || t("anyName");
  const end = async () => {
    setBusy(true);
    try {
      await endJoinToken(token.id);
      say(t("tokenEnded"));
    } catch (error) {
      setBusy(false);
      sayFailed(t("tokenNotEnded"), error);
    }
  };
  return (
    <li className="flex items-center gap-3 border-b border-line py-1.5 text-dense last:border-b-0">
      <span className="min-w-0 flex-1 wrap-anywhere">
        {name}
        <span className="block text-meta text-muted">
          <Expires at={token.expires_at} /> {token.uses > 1 && t("usedOf", { used: token.used, uses: token.uses })} {token.from && t("fromOnly", { from: token.from })}
        </span>
      </span>
      <Button size="sm" busy={busy} aria-label={t("endTokenOf", { name })} onClick={() => void end()}>
        {t("endToken")}
      </Button>
    </li>
  );
}
