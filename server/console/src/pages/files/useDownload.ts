import { useState } from "react";
import { useTranslation } from "react-i18next";
import { readFile } from "@/api/files";
import { saveAs } from "@/state/download";
import { sayFailed } from "@/ui/Toast";

/** Downloads a file of a runner. `read` is how many bytes of it there are so far, while it is under way. */
export function useDownload(runner: string | undefined, path: string, name: string): { read: number | undefined; download: () => Promise<void> } {
  const { t } = useTranslation("files");
  const [read, setRead] = useState<number>();
  const download = async () => {
    setRead(0);
    try {
      saveAs(name, await readFile(runner, path, new AbortController().signal, setRead));
    } catch (error) {
      sayFailed(t("downloadFailed", { name }), error);
    } finally {
      setRead(undefined);
    }
  };
  return { read, download };
}
