import { useState } from "react";
import { useTranslation } from "react-i18next";
import { createJoinToken } from "@/api/join-tokens";
import { queries } from "@/api/query";
import { runnersQuery } from "@/api/runners";
import type { JoinToken } from "@/api/schema";
import { Button } from "@/ui/Button";
import { Dialog } from "@/ui/Dialog";
import { ErrorNote } from "@/ui/ErrorNote";
import { Made } from "./Made";
import { OpenTokens } from "./OpenTokens";
import { Options, OPTIONS_FORM } from "./Options";
import { firstTerms, requestOf, type Terms } from "./terms";

/** A token that was made in this dialog. It is shown until the dialog closes, and never again. */
export interface MadeToken {
  token: JoinToken;
  terms: Terms;
  /** The runners that were there before: those that come are others. */
  before: ReadonlySet<string>;
}

/** Adds a machine: first on which terms, then the line to paste there, and who came. */
export function EnrolDialog({ onClose }: { onClose: () => void }) {
  const { t } = useTranslation("runners");
  const [terms, setTerms] = useState(() => firstTerms(location.origin));
  const [made, setMade] = useState<MadeToken>();
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const make = async () => {
    setBusy(true);
    setError(undefined);
    try {
      // The list may be older than a machine that came just now.
      const { runners } = await queries.fetchQuery({ ...runnersQuery, staleTime: 0 });
      const token = await createJoinToken(requestOf(terms));
      setMade({ token, terms, before: new Set(runners.map((runner) => runner.id)) });
    } catch (failure) {
      setError(failure);
    } finally {
      setBusy(false);
    }
  };
  return (
    <Dialog
      open
      wide
      // A click beside it must not lose the token.
      dismissable={!made}
      onClose={onClose}
      title={t("addMachine")}
      description={made ? undefined : t("enrolWhy")}
      actions={
        made ? (
          <>
            <Button onClick={() => setMade(undefined)}>{t("otherToken")}</Button>
            <Button onClick={onClose}>{t("done", { ns: "common" })}</Button>
          </>
        ) : (
          <>
            <Button onClick={onClose}>{t("cancel", { ns: "common" })}</Button>
            <Button type="submit" form={OPTIONS_FORM} look="primary" busy={busy}>
              {t("makeLine")}
            </Button>
          </>
        )
      }
    >
      {error !== undefined && <ErrorNote error={error} className="mb-3" />}
      {made ? (
        <Made key={made.token.id} made={made} busy={busy} onAgain={() => void make()} onClose={onClose} />
      ) : (
        <Options terms={terms} onChange={(change) => setTerms({ ...terms, ...change })} onSubmit={() => void make()} />
      )}
      <OpenTokens except={made?.token.id} />
    </Dialog>
  );
}
