import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { useTranslation } from "react-i18next";
import { beginSignIn, toolServersQuery } from "@/api/tool-servers";
import { Button } from "@/ui/Button";
import { Dialog } from "@/ui/Dialog";
import { ErrorNote } from "@/ui/ErrorNote";
import { Skeleton } from "@/ui/Skeleton";
import { say } from "@/ui/Toast";

/** The interval between two looks at whether the person is back, in milliseconds. */
const LOOK_EVERY_MS = 2000;

interface SignInDialogProps {
  /** The name of the tool server. */
  server: string;
  /** The session that found it in its project; undefined for one that is registered. */
  session?: string | undefined;
  onClose: () => void;
}

/** Leads to the page where the person signs in to a tool server, and closes once the server has the answer. */
export function SignInDialog({ server, session, onClose }: SignInDialogProps) {
  const { t } = useTranslation("settings");
  const [asked] = useState(() => Date.now());
  const begun = useQuery({ queryKey: ["tool-server-sign-in", server, session ?? "", asked], queryFn: () => beginSignIn({ server, ...(session ? { session } : {}) }), gcTime: 0 });
  const known = useQuery({ ...toolServersQuery, refetchInterval: LOOK_EVERY_MS, enabled: session === undefined }).data;
  const one = known?.tool_servers.findLast((registered) => registered.name === server);
  // The sign-in of before says nothing of this one.
  const done = one?.sign_in === "signed_in" && one.since != null && begun.data !== undefined && Date.parse(one.since) >= asked;
  useEffect(() => {
    if (!done) return;
    say(t("signedInTo", { name: server }));
    onClose();
  }, [done, server, onClose, t]);
  return (
    <Dialog
      open
      onClose={onClose}
      title={t("signInTitle", { name: server })}
      description={t("signInWhy")}
      actions={<Button onClick={onClose}>{t("close", { ns: "common" })}</Button>}
    >
      {begun.error ? (
        <ErrorNote error={begun.error} title={t("signInFailed")} onRetry={() => void begun.refetch()} />
      ) : begun.data ? (
        <>
          <p className="text-dense">
            {t("signInAt")} <code className="text-code wrap-anywhere">{begun.data.issuer}</code>
          </p>
          <a href={begun.data.url} target="_blank" rel="noopener noreferrer" className="touchable mt-3 inline-flex h-8 items-center rounded-control bg-accent px-3 font-medium text-on-accent hover:bg-accent-hover">
            {t("openSignIn")}
          </a>
          <p role="status" className="mt-3 text-dense text-muted">
            {session === undefined ? t("signInWaits") : t("signInNextTurn")}
          </p>
        </>
      ) : (
        <Skeleton rows={2} />
      )}
    </Dialog>
  );
}
