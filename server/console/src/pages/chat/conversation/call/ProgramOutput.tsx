import { useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import { bytes } from "@/format/number";
import type { CallItem } from "@/transcript/model";
import { TerminalText } from "@/ui/TerminalText";
import { useConversation } from "../context";
import { isRunning } from "./about";
import { StoredOutput } from "./StoredOutput";

/** The command and the end of its output; all of it is asked for by hand. */
export function ProgramOutput({ item }: { item: CallItem }) {
  const { t } = useTranslation("transcript");
  const { onFold } = useConversation();
  const [all, setAll] = useState(false);
  const { output } = item;
  const lines = useMemo(() => output?.lines() ?? [], [output]);
  const command = item.request.kind === "shell" ? item.request.command : undefined;
  const isCut = output !== null && (output.leftOut > 0 || output.missing > 0);
  return (
    <div className="border-t border-term-line bg-term">
      {isCut && item.operation && !all && (
        <div className="flex flex-wrap items-center gap-x-3 border-b border-term-line px-3 py-1 text-meta text-term-faint">
          {output.leftOut > 0 ? t("outputLeftOut", { size: bytes(output.leftOut) }) : t("outputMissing", { size: bytes(output.missing) })}
          <button
            type="button"
            onClick={() => {
              onFold();
              setAll(true);
            }}
            className="touchable text-term-ink underline"
          >
            {t("showAllOutput")}
          </button>
        </div>
      )}
      {all && item.operation ? (
        <StoredOutput operation={item.operation} onClose={() => setAll(false)} />
      ) : (
        <TerminalText lines={lines} command={command} live={isRunning(item)} label={t("outputOf", { command: command ?? item.tool })} />
      )}
      {output === null && item.result !== "" && <pre className="px-3 pb-2 text-code wrap-anywhere whitespace-pre-wrap text-term-ink">{item.result.slice(0, 20_000)}</pre>}
      {lines.length === 0 && item.result === "" && item.end && <p className="px-3 pb-2 text-meta text-term-faint">{t("noOutput")}</p>}
    </div>
  );
}
