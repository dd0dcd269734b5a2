import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { useTranslation } from "react-i18next";
import { wholeExtensionQuery } from "@/api/extensions";
import type { Extension } from "@/api/schema";
import { bytes } from "@/format/number";
import { Code } from "@/ui/Code";
import { Dialog } from "@/ui/Dialog";
import { ErrorNote } from "@/ui/ErrorNote";
import { Skeleton } from "@/ui/Skeleton";
import { KINDS } from "./look";
import { SKILL_FILE, textOf, unpacked } from "./source";

/** An extension with its whole text and its other files. */
export function ShowExtension({ extension, onClose }: { extension: Extension; onClose: () => void }) {
  const { t } = useTranslation("settings");
  const whole = useQuery(wholeExtensionQuery(extension));
  return (
    <Dialog
      open
      wide
      onClose={onClose}
      title={extension.name}
      description={
        <>
          {t(KINDS[extension.kind].word)} · <code className="wrap-anywhere">{extension.digest}</code>
        </>
      }
    >
      {whole.error && !whole.data ? <ErrorNote error={whole.error} onRetry={() => void whole.refetch()} /> : whole.data ? <Whole extension={whole.data} /> : <Skeleton rows={4} />}
    </Dialog>
  );
}

function Whole({ extension }: { extension: Extension }) {
  const files = useMemo(() => [...unpacked(extension.packed)], [extension.packed]);
  const isJson = extension.kind === "hooks" || extension.kind === "mcp";
  return (
    <div className="flex flex-col gap-3">
      <Code text={isJson ? pretty(extension.text) : extension.text} language={isJson ? "json" : "markdown"} title={extension.kind === "skill" ? SKILL_FILE : extension.name} />
      {files.map(([path, content]) => (
        <details key={path} className="text-dense">
          <summary>
            <code className="text-code wrap-anywhere">{path}</code> <span className="text-meta text-muted">{bytes(content.length)}</span>
          </summary>
          <div className="mt-2">
            <Content path={path} content={content} />
          </div>
        </details>
      ))}
    </div>
  );
}

function Content({ path, content }: { path: string; content: Uint8Array }) {
  const { t } = useTranslation("settings");
  const text = useMemo(() => textOf(content), [content]);
  return text === undefined ? <p className="text-muted">{t("noTextToShow")}</p> : <Code text={text} language={path.split(".").at(-1) ?? ""} title={path} />;
}

/** JSON with a line for each value; as it is where it is none. */
function pretty(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
