import { House } from "lucide-react";
import { useTranslation } from "react-i18next";
import { IconButton } from "@/ui/Button";
import { crumbs } from "./path";

/** The way from the workspace to a folder; each part leads there. */
export function Crumbs({ path, onGo }: { path: string; onGo: (path: string) => void }) {
  const { t } = useTranslation("files");
  const parts = crumbs(path);
  return (
    <nav aria-label={t("path")} className="flex min-w-0 flex-1 items-center gap-0.5 overflow-x-auto py-1 text-dense">
      <IconButton icon={House} label={t("workspace")} onClick={() => onGo("")} />
      {parts.map((part, index) => (
        <span key={part.path} className="flex shrink-0 items-center gap-0.5">
          <span aria-hidden className="text-faint">
            /
          </span>
          <button
            type="button"
            aria-current={index === parts.length - 1 ? "page" : undefined}
            onClick={() => onGo(part.path)}
            className="touchable max-w-48 truncate rounded-control px-1 hover:bg-hover aria-[current]:font-medium"
          >
            {part.name}
          </button>
        </span>
      ))}
    </nav>
  );
}
