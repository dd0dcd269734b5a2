import type { UseQueryResult } from "@tanstack/react-query";
import type { Models } from "@/api/schema";
import { Accounts } from "@/pages/settings/models/Accounts";
import { ErrorNote } from "@/ui/ErrorNote";
import { Skeleton } from "@/ui/Skeleton";

/** The accounts at providers whose models everyone may use. */
export function EveryonesAccounts({ query, editable }: { query: UseQueryResult<Models>; editable: boolean }) {
  if (query.data) return <Accounts forEveryone accounts={query.data.accounts} providers={query.data.providers} editable={editable} />;
  if (query.error) return <ErrorNote error={query.error} onRetry={() => void query.refetch()} className="mb-8" />;
  return <Skeleton rows={2} />;
}
