import { useQuery } from "@tanstack/react-query";
import { extensionsQuery } from "@/api/extensions";
import { ExtensionList } from "@/pages/settings/extensions/ExtensionList";
import { ErrorNote } from "@/ui/ErrorNote";
import { Skeleton } from "@/ui/Skeleton";

/** The extensions for the agents of everyone. */
export function EveryonesExtensions({ editable }: { editable: boolean }) {
  const { data, error, refetch } = useQuery(extensionsQuery);
  if (data) return <ExtensionList all={data.extensions} layer="tenant" editable={editable} />;
  if (error) return <ErrorNote error={error} onRetry={() => void refetch()} />;
  return <Skeleton rows={2} />;
}
