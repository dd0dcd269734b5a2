import { useQuery } from "@tanstack/react-query";
import { Download } from "lucide-react";
import { useEffect, useState } from "react";
import { useTranslation } from "react-i18next";
import { LARGEST, readFile } from "@/api/files";
import type { ListedEntry } from "@/api/schema";
import { bytes } from "@/format/number";
import { Button } from "@/ui/Button";
import { Code } from "@/ui/Code";
import { Dialog } from "@/ui/Dialog";
import { ErrorNote } from "@/ui/ErrorNote";
import { Skeleton } from "@/ui/Skeleton";
import { join } from "./path";
import { useDownload } from "./useDownload";

/** The largest file that is shown, in bytes. */
const LARGEST_SHOWN = 4 * 1024 * 1024;
/** The text that is shown of a file, in characters. */
const LONGEST_TEXT = 1024 * 1024;

/** The kinds of pictures that are shown. They run nothing: SVG is not among them. */
const PICTURES: Readonly<Record<string, string>> = { png: "image/png", jpg: "image/jpeg", jpeg: "image/jpeg", gif: "image/gif", webp: "image/webp" };

type Content = { kind: "text"; text: string; cut: boolean } | { kind: "picture"; blob: Blob } | { kind: "bytes" };

/** Shows a file: text with its colours, or a picture. Nothing of it is ever a page of this origin. */
export function Viewer({ runner, folder, entry, onClose }: { runner: string | undefined; folder: string; entry: ListedEntry; onClose: () => void }) {
  const { t } = useTranslation("files");
  const path = join(folder, entry.name);
  const { read, download } = useDownload(runner, path, entry.name);
  const tooLarge = entry.bytes > LARGEST_SHOWN;
  const content = useQuery({
    queryKey: ["files", "content", runner ?? "", path],
    queryFn: async ({ signal }) => contentOf(entry.name, await readFile(runner, path, signal)),
    enabled: !tooLarge,
    staleTime: 0,
    gcTime: 0,
    retry: false,
  });
  return (
    <Dialog
      open
      wide
      onClose={onClose}
      title={entry.name}
      description={`${path} · ${bytes(entry.bytes)}`}
      actions={
        <Button icon={Download} busy={read !== undefined} disabled={entry.bytes > LARGEST} onClick={() => void download()}>
          {t("download")}
        </Button>
      }
    >
      {tooLarge && <p className="text-dense text-muted">{t("tooLargeToShow", { size: bytes(LARGEST_SHOWN) })}</p>}
      {content.isError && <ErrorNote error={content.error} title={t("readFailed")} onRetry={() => void content.refetch()} />}
      {!tooLarge && content.isPending && <Skeleton rows={6} className="h-4" />}
      {content.data?.kind === "text" && (
        <>
          <Code text={content.data.text} language={entry.name.split(".").at(-1) ?? ""} firstLine={1} title={entry.name} />
          {content.data.cut && <p className="mt-2 text-meta text-muted">{t("cut")}</p>}
        </>
      )}
      {content.data?.kind === "picture" && <Picture blob={content.data.blob} name={entry.name} />}
      {content.data?.kind === "bytes" && <p className="text-dense text-muted">{t("noText")}</p>}
    </Dialog>
  );
}

async function contentOf(name: string, blob: Blob): Promise<Content> {
  const type = PICTURES[name.split(".").at(-1)?.toLowerCase() ?? ""];
  if (type) return { kind: "picture", blob: blob.slice(0, blob.size, type) };
  const all = new Uint8Array(await blob.arrayBuffer());
  if (all.subarray(0, 8192).includes(0)) return { kind: "bytes" };
  const text = new TextDecoder().decode(all);
  return { kind: "text", text: text.slice(0, LONGEST_TEXT), cut: text.length > LONGEST_TEXT };
}

function Picture({ blob, name }: { blob: Blob; name: string }) {
  const [address, setAddress] = useState<string>();
  useEffect(() => {
    const made = URL.createObjectURL(blob);
    setAddress(made);
    return () => URL.revokeObjectURL(made);
  }, [blob]);
  return address ? <img src={address} alt={name} className="max-h-[70dvh] max-w-full rounded-control border border-line" /> : null;
}
