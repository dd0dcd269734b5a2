import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useMemo } from "react";
import { useTranslation } from "react-i18next";
import { foundExtensionsQuery } from "@/api/extensions";
import { Found } from "@/pages/settings/extensions/Found";
import { useTranscript } from "@/transcript/use";
import { Dialog } from "@/ui/Dialog";

/** The extensions of a chat: what counts in it, how its tool servers do, and what waits for trust. */
export default function SessionExtensions({ session, onClose }: { session: string; onClose: () => void }) {
  const { t } = useTranslation("settings");
  const queries = useQueryClient();
  const { items } = useTranscript(session);
  const looked = items.findLast((item) => item.kind === "note" && item.note.type === "extensions")?.id;
  const offered = items.findLast((item) => item.kind === "note" && item.note.type === "tool_servers");
  const servers = useMemo(() => {
    const known = offered?.kind === "note" && offered.note.type === "tool_servers" ? offered.note.servers : [];
    return new Map(known.map((server) => [server.name, server]));
  }, [offered]);
  // Another turn has looked since.
  useEffect(() => {
    void queries.invalidateQueries({ queryKey: foundExtensionsQuery(session).queryKey });
  }, [queries, session, looked]);
  return (
    <Dialog open shape="sheet" onClose={onClose} title={t("extensionsOfThisChat")} description={t("extensionsOfThisChatNote")}>
      <Found session={session} servers={servers} />
    </Dialog>
  );
}
