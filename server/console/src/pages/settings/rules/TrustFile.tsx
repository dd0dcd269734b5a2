import { useMutation, useQuery } from "@tanstack/react-query";
import { type FormEvent, useId, useState } from "react";
import { useTranslation } from "react-i18next";
import { proposedRulesQuery, trustFile } from "@/api/permissions";
import { ProblemError } from "@/api/problem";
import type { ProposedRules } from "@/api/schema";
import { recentSessionsQuery } from "@/api/sessions";
import { Button } from "@/ui/Button";
import { Dialog } from "@/ui/Dialog";
import { ErrorNote } from "@/ui/ErrorNote";
import { Field, Select } from "@/ui/Field";
import { Skeleton } from "@/ui/Skeleton";
import { RefusedNote } from "../rows/Row";
import { DecisionBadge } from "./DecisionBadge";

/** Shows the file with a project's rules that the last turn of a chat found, and trusts that very text. */
export function TrustFile({ onClose }: { onClose: () => void }) {
  const { t } = useTranslation("settings");
  const sessions = useQuery(recentSessionsQuery);
  const [chosen, setChosen] = useState("");
  const session = chosen || sessions.data?.sessions[0]?.id || "";
  const proposed = useQuery({ ...proposedRulesQuery(session), enabled: session !== "", staleTime: 0 });
  const trust = useMutation({ mutationFn: (digest: string) => trustFile({ session, digest }), onSuccess: onClose });
  const file = proposed.data;
  const none = proposed.error instanceof ProblemError && proposed.error.status === 404;
  const can = file !== undefined && !file.problem && !file.trusted && !proposed.isFetching;
  const form = useId();
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (file) trust.mutate(file.digest);
  };
  return (
    <Dialog
      open
      onClose={onClose}
      title={t("trustTitle")}
      description={t("trustWhy")}
      actions={
        <>
          <Button onClick={onClose}>{t("cancel", { ns: "common" })}</Button>
          <Button type="submit" form={form} look="primary" disabled={!can} busy={trust.isPending}>
            {t("trust")}
          </Button>
        </>
      }
    >
      {sessions.data?.sessions.length === 0 ? (
        <p className="text-dense text-muted">{t("noChats")}</p>
      ) : (
        <form id={form} onSubmit={submit}>
          <Field label={t("chat")} hint={t("chatHint")}>
            {(control) => (
              <Select {...control} value={session} onChange={(event) => setChosen(event.target.value)}>
                {sessions.data?.sessions.map((one) => (
                  <option key={one.id} value={one.id}>
                    {one.title || t("untitled")}
                  </option>
                ))}
              </Select>
            )}
          </Field>
        </form>
      )}
      <div className="mt-4">
        {session && proposed.isFetching && <Skeleton rows={2} />}
        {!proposed.isFetching && none && <p className="text-dense text-muted">{t("noProposal")}</p>}
        {!proposed.isFetching && proposed.error && !none && <ErrorNote error={proposed.error} onRetry={() => void proposed.refetch()} />}
        {!proposed.isFetching && file && <Proposal file={file} />}
      </div>
      {trust.error && <RefusedNote error={trust.error} className="mt-3" />}
    </Dialog>
  );
}

function Proposal({ file }: { file: ProposedRules }) {
  const { t } = useTranslation("settings");
  return (
    <>
      <p className="text-dense">
        <code className="text-code wrap-anywhere">{file.path}</code> <span className="text-muted">{t("fileOnRunner", { runner: file.runner })}</span>
      </p>
      {file.problem && <p className="mt-2 text-dense text-warn wrap-anywhere">{t("cannotTrust", { reason: file.problem })}</p>}
      {file.trusted && <p className="mt-2 text-dense text-muted">{t("trustedAlready")}</p>}
      <ul className="mt-3 flex flex-col gap-1.5">
        {file.rules.map((rule) => (
          <li key={`${rule.decision} ${rule.rule}`} className="flex items-center gap-3">
            <DecisionBadge decision={rule.decision} />
            <code className="min-w-0 text-code wrap-anywhere">{rule.rule}</code>
          </li>
        ))}
      </ul>
    </>
  );
}
