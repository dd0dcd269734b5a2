import { useState } from "react";
import { useTranslation } from "react-i18next";
import { IMAGE_TYPES, imageAddress } from "@/api/images";
import { bytes } from "@/format/number";
import type { Image } from "@/transcript/model";
import { Dialog } from "@/ui/Dialog";
import { useConversation } from "./context";

/** Images of a message or of a result, in boxes of one height, so that nothing moves once they come. */
export function Images({ images }: { images: readonly Image[] }) {
  const { t } = useTranslation("transcript");
  const { session } = useConversation();
  const [shown, setShown] = useState<Image | undefined>();
  const address = (image: Image) => imageAddress(session, image.digest);
  return (
    <div className="mt-2 flex flex-wrap gap-2">
      {images.map((image, index) =>
        IMAGE_TYPES.includes(image.mediaType) ? (
          <button
            key={index}
            type="button"
            aria-label={t("openImage", { size: bytes(image.bytes) })}
            onClick={() => setShown(image)}
            className="h-40 max-w-full overflow-hidden rounded-control border border-line bg-sunken"
          >
            <img src={address(image)} alt="" loading="lazy" decoding="async" className="h-full min-w-24 max-w-full object-contain" />
          </button>
        ) : (
          <p key={index} className="text-dense text-muted">
            {t("imageKind", { kind: image.mediaType, size: bytes(image.bytes) })}
          </p>
        ),
      )}
      <Dialog open={shown !== undefined} onClose={() => setShown(undefined)} title={t("image")} wide>
        {shown && <img src={address(shown)} alt={t("image")} className="mx-auto max-h-[70dvh] object-contain" />}
      </Dialog>
    </div>
  );
}
