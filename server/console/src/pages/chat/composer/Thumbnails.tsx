import { X } from "lucide-react";
import { useTranslation } from "react-i18next";
import { IconButton } from "@/ui/Button";
import { cx } from "@/ui/class";
import { reasonOf } from "@/ui/failure";
import type { Attached } from "./useImages";

/** The images of the message that is being written. */
export function Thumbnails({ images, onRemove }: { images: readonly Attached[]; onRemove: (key: string) => void }) {
  const { t } = useTranslation("chat");
  if (images.length === 0) return null;
  return (
    <ul aria-label={t("inputImages")} className="flex flex-wrap gap-2 px-3 pt-3">
      {images.map((image) => (
        <li key={image.key} className={cx("relative size-16 rounded-control border bg-sunken", image.state === "failed" ? "border-bad" : "border-line")}>
          <img src={image.address} alt={image.name} className={cx("size-full rounded-control object-cover", image.state !== "there" && "opacity-55")} />
          {image.state === "adding" && <span className="absolute inset-x-0 bottom-0 truncate rounded-b-control bg-raised px-1 text-center text-meta text-muted">{t("inputImageAdding")}</span>}
          {image.state === "failed" && (
            <span role="alert" title={image.error === undefined ? undefined : reasonOf(image.error)} className="absolute inset-x-0 bottom-0 truncate rounded-b-control bg-bad-soft px-1 text-center text-meta text-bad">
              {t("inputImageFailed")}
            </span>
          )}
          <IconButton size="sm" look="plain" icon={X} label={t("inputImageRemove", { name: image.name })} onClick={() => onRemove(image.key)} className="absolute -top-2 -right-2 size-5! min-h-5! min-w-5! rounded-full p-0 pointer-coarse:size-7!" />
        </li>
      ))}
    </ul>
  );
}
