import { type ReactNode, useState } from "react";
import { useTranslation } from "react-i18next";
import { LARGEST, writeFile } from "@/api/files";
import { bytes } from "@/format/number";
import { Confirm } from "@/ui/Confirm";
import { sayFailed } from "@/ui/Toast";
import { join } from "./path";

interface Upload {
  id: number;
  name: string;
  size: number;
  sent: number;
}

let next = 1;

/**
 * Uploads files to a folder, one after the other; `list` shows those that are under way. `names` are those that the folder
 * has: the person is asked before a file of such a name is replaced.
 */
export function useUploads(runner: string | undefined, folder: string, names: readonly string[]): { add: (files: File[]) => void; list: ReactNode } {
  const { t } = useTranslation("files");
  const [uploads, setUploads] = useState<readonly Upload[]>([]);
  const [asked, setAsked] = useState<readonly File[]>();
  const one = async (file: File, id: number) => {
    const progress = (sent: number) => setUploads((all) => all.map((upload) => (upload.id === id ? { ...upload, sent } : upload)));
    try {
      if (file.size > LARGEST) throw new Error(t("tooLarge", { size: bytes(LARGEST) }));
      await writeFile(runner, join(folder, file.name), file, progress);
    } catch (error) {
      sayFailed(t("uploadFailed", { name: file.name }), error);
    } finally {
      setUploads((all) => all.filter((upload) => upload.id !== id));
    }
  };
  const start = (files: readonly File[]) => {
    const numbered = files.map((file) => ({ file, id: next++ }));
    setUploads((all) => [...all, ...numbered.map(({ file, id }) => ({ id, name: file.name, size: file.size, sent: 0 }))]);
    void numbered.reduce((before, { file, id }) => before.then(() => one(file, id)), Promise.resolve());
  };
  const add = (files: File[]) => (files.some((file) => names.includes(file.name)) ? setAsked(files) : start(files));
  const replaced = asked?.filter((file) => names.includes(file.name)).map((file) => file.name) ?? [];
  const list = (
    <>
      {uploads.length > 0 && (
        <ul role="status" className="border-b border-line bg-accent-soft px-3 py-2 text-meta">
          {uploads.map((upload) => (
            <li key={upload.id}>{t("uploading", { name: upload.name, sent: bytes(upload.sent), size: bytes(upload.size) })}</li>
          ))}
        </ul>
      )}
      <Confirm
        open={asked !== undefined}
        onClose={() => setAsked(undefined)}
        danger
        title={t("replaceTitle", { count: replaced.length })}
        verb={t("replace")}
        onConfirm={async () => start(asked ?? [])}
      >
        {t("replaceHint")} <span className="font-mono wrap-anywhere">{replaced.slice(0, 10).join(t("listComma", { ns: "common" }))}</span>
      </Confirm>
    </>
  );
  return { add, list };
}
