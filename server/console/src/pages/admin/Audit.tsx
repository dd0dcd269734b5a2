import { useInfiniteQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { Download, ScrollText } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { auditQuery } from "@/api/audit";
import { Button } from "@/ui/Button";
import { Empty } from "@/ui/Empty";
import { ErrorNote } from "@/ui/ErrorNote";
import { Page } from "@/ui/Page";
import { Skeleton } from "@/ui/Skeleton";
import { AuditTable } from "./audit/AuditTable";
import { ExportDialog } from "./audit/ExportDialog";
import { Filters } from "./audit/Filters";

/** The audit log: who did what, to what, when, from where; the newest first. Its filters are in the address. */
export function Audit() {
  const { t } = useTranslation("admin");
  const filter = useSearch({ from: "/frame/admin/audit" });
  const navigate = useNavigate({ from: "/admin/audit" });
  const [exporting, setExporting] = useState(false);
  const log = useInfiniteQuery(auditQuery(filter));
  const entries = log.data?.pages.flatMap((page) => page.entries.toReversed()) ?? [];
  const names = Object.assign({}, ...(log.data?.pages.map((page) => page.names ?? {}) ?? [])) as Record<string, string>;
  return (
    <Page
      wide
      title={t("audit")}
      actions={
        <Button icon={Download} onClick={() => setExporting(true)}>
          {t("export")}
        </Button>
      }
    >
      <Filters filter={filter} onChange={(changed) => void navigate({ search: changed })} />
      {log.isError && <ErrorNote error={log.error} title={t("auditFailed")} onRetry={() => void log.refetch()} />}
      {log.isPending && <Skeleton rows={8} className="h-9" />}
      {log.isSuccess && entries.length === 0 && (
        <Empty icon={ScrollText} title={t("noEntries")}>
          {t("noEntriesHint")}
        </Empty>
      )}
      {entries.length > 0 && <AuditTable entries={entries} names={names} />}
      {log.hasNextPage && (
        <div className="mt-4 text-center">
          <Button busy={log.isFetchingNextPage} onClick={() => void log.fetchNextPage()}>
            {t("older")}
          </Button>
        </div>
      )}
      {exporting && <ExportDialog filter={filter} onClose={() => setExporting(false)} />}
    </Page>
  );
}
