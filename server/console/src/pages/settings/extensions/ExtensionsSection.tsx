import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { extensionsQuery } from "@/api/extensions";
import { mayWork, useMe } from "@/api/me";
import { recentSessionsQuery } from "@/api/sessions";
import { ErrorNote } from "@/ui/ErrorNote";
import { Select } from "@/ui/Field";
import { Section } from "@/ui/Page";
import { Skeleton } from "@/ui/Skeleton";
import { EmptyRow } from "../rows/EmptyRow";
import { ExtensionList } from "./ExtensionList";
import { Found } from "./Found";

/** What the person brings to agents: the own extensions, those of everyone, and those that a chat found. */
export function ExtensionsSection() {
  const me = useMe();
  const { data, error, refetch } = useQuery(extensionsQuery);
  if (error && !data) return <ErrorNote error={error} onRetry={() => void refetch()} />;
  if (!data) return <Skeleton rows={4} />;
  return (
    <>
      <ExtensionList all={data.extensions} layer="user" editable={mayWork(me)} />
      <ExtensionList all={data.extensions} layer="tenant" editable={false} />
      <OfChats />
    </>
  );
}

/** What the last turn of a chat found. */
function OfChats() {
  const { t } = useTranslation("settings");
  const { data, error, refetch } = useQuery(recentSessionsQuery);
  const [chosen, setChosen] = useState("");
  const sessions = data?.sessions ?? [];
  const session = chosen || sessions[0]?.id;
  const choose = sessions.length > 0 && (
    <Select aria-label={t("chat")} value={session} onChange={(event) => setChosen(event.target.value)} className="max-w-64 text-dense">
      {sessions.map((one) => (
        <option key={one.id} value={one.id}>
          {one.title || t("untitled")}
        </option>
      ))}
    </Select>
  );
  return (
    <Section title={t("extensionsOfChat")} note={t("extensionsOfChatNote")} actions={choose}>
      {error && !data ? (
        <ErrorNote error={error} onRetry={() => void refetch()} />
      ) : session ? (
        <Found key={session} session={session} />
      ) : data ? (
        <EmptyRow title={t("extensionsNoChat")}>{t("extensionsNoChatWhy")}</EmptyRow>
      ) : (
        <Skeleton rows={2} />
      )}
    </Section>
  );
}
