import { useQuery } from "@tanstack/react-query";
import { useRef } from "react";
import { useTranslation } from "react-i18next";
import { storedBytesQuery } from "@/api/operations";
import { ErrorNote } from "@/ui/ErrorNote";
import { KeyRow } from "./KeyRow";
import { Shell, type ShellHandle } from "./Shell";
import { noteEnd } from "./terminals";

/** A terminal of an operation that may have run for long: asks first how much of its output is stored. */
export function StoredShell({ operation, fontSize, takesFocus }: { operation: string; fontSize: number; takesFocus: boolean }) {
  const { t } = useTranslation("terminal");
  const stored = useQuery(storedBytesQuery(operation));
  const shell = useRef<ShellHandle>(null);
  if (stored.isError) return <ErrorNote error={stored.error} title={t("notFound")} onRetry={() => void stored.refetch()} className="m-2" />;
  if (stored.data === undefined) return <div className="flex-1 bg-term" />;
  return (
    <>
      <Shell ref={shell} operation={operation} stored={stored.data} fontSize={fontSize} takesFocus={takesFocus} onEnd={() => noteEnd(operation)} />
      <KeyRow onType={(text) => shell.current?.type(text)} onDone={() => shell.current?.focus()} />
    </>
  );
}
