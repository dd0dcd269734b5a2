import { type ReactNode, useState } from "react";
import { useTranslation } from "react-i18next";
import { LARGEST, writeFile } from "@/api/files";
import { bytes } from "@/format/number";
import { sayFailed } from "@/ui/Toast";
import { join } from "./path";

interface Upload {
  name: string;
  size: number;
  sent: number;
}

/** Uploads files to a folder, one after the other; `list` shows those that are under way. */
export function useUploads(runner: string | undefined, folder: string): { add: (files: File[]) => void; list: ReactNode } {
  const { t } = useTranslation("files");
  const [uploads, setUploads] = useState<readonly Upload[]>([]);
  const one = async (file: File) => {
    const progress = (sent: number) => setUploads((all) => all.map((upload) => (upload.name === file.name ? { ...upload, sent } : upload)));
    try {
      if (file.size > LARGEST) throw new Error(t("tooLarge", { size: bytes(LARGEST) }));
      await writeFile(runner, join(folder, file.name), file, progress);
    } catch (error) {
      sayFailed(t("uploadFailed", { name: file.name }), error);
    } finally {
      setUploads((all) => all.filter((upload) => upload.name !== file.name));
    }
  };
  const add = (files: File[]) => {
    setUploads((all) => [...all, ...files.map((file) => ({ name: file.name, size: file.size, sent: 0 }))]);
    void files.reduce((before, file) => before.then(() => one(file)), Promise.resolve());
  };
  const list = uploads.length > 0 && (
    <ul role="status" className="border-b border-line bg-accent-soft px-3 py-2 text-meta">
      {uploads.map((upload) => (
        <li key={upload.name}>{t("uploading", { name: upload.name, sent: bytes(upload.sent), size: bytes(upload.size) })}</li>
      ))}
    </ul>
  );
  return { add, list };
}
