import { useQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import { mayWork, useMe } from "@/api/me";
import { permissionsQuery } from "@/api/permissions";
import { ErrorNote } from "@/ui/ErrorNote";
import { Skeleton } from "@/ui/Skeleton";
import { filesOf } from "./order";
import { RuleList } from "./RuleList";
import { TestDeed } from "./TestDeed";
import { TrustedFiles } from "./TrustedFiles";

/** What the person's agents may do: rules, a try, and the rules of projects. */
export function RulesSection() {
  const { t } = useTranslation("settings");
  const me = useMe();
  const { data, error, refetch } = useQuery(permissionsQuery);
  if (error && !data) return <ErrorNote error={error} onRetry={() => void refetch()} />;
  if (!data) return <Skeleton rows={4} />;
  return (
    <>
      <RuleList editable={mayWork(me)} layer="user" title={t("navRules")} note={t("rulesNote")} rules={data.rules.filter((rule) => !rule.file)} />
      <TestDeed />
      <TrustedFiles files={filesOf(data.rules)} />
    </>
  );
}
