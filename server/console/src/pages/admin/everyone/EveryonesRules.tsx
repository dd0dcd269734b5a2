import type { UseQueryResult } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import type { PermissionRules } from "@/api/schema";
import { RuleList } from "@/pages/settings/rules/RuleList";
import { ErrorNote } from "@/ui/ErrorNote";
import { Skeleton } from "@/ui/Skeleton";

/** The rules for the agents of everyone, with those of the operator, which nobody changes here. */
export function EveryonesRules({ query, editable }: { query: UseQueryResult<PermissionRules>; editable: boolean }) {
  const { t } = useTranslation("settings");
  if (query.data) {
    const rules = query.data.rules.filter((rule) => rule.set_by === "tenant" || rule.set_by === "operator");
    return <RuleList layer="tenant" title={t("everyoneRules")} note={t("everyoneRulesNote")} rules={rules} editable={editable} />;
  }
  if (query.error) return <ErrorNote error={query.error} onRetry={() => void query.refetch()} />;
  return <Skeleton rows={2} />;
}
