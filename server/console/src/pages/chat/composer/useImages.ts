import { useEffect, useRef, useState } from "react";
import { addImage, IMAGE_BYTES, IMAGE_TYPES, imageAddress } from "@/api/images";
import { idempotencyKey } from "@/api/client";
import { MESSAGE_IMAGES } from "@/api/messages";
import type { OutgoingImage } from "./outbox";

/** An image that belongs to the message that is being written. */
export interface Attached {
  key: string;
  name: string;
  /** The address of its bytes. */
  address: string;
  /** Its bytes; absent for one that the session has and that came back into the input. */
  file?: File;
  /** `adding` until the session has it; in a chat that has not begun, an image is `there` at once. */
  state: "adding" | "there" | "failed";
  digest?: string;
  error?: unknown;
}

/** Why an image is not taken. */
export type Unfit = "type" | "size" | "count";

/** The images of the message that is being written. */
export interface Images {
  attached: readonly Attached[];
  /** Takes the images of a paste, a drop or a choice. Returns why some are not taken, with the first one's name. */
  add: (files: readonly File[]) => { why: Unfit; name: string } | undefined;
  remove: (key: string) => void;
  /** Takes back what was given to a message. */
  putBack: (images: readonly OutgoingImage[]) => void;
  /** Gives the images to a message, and begins anew. */
  take: () => OutgoingImage[];
}

/** The images of the message that is being written. A session is given each at once, so that a refusal is seen early. */
export function useImages(session: string | undefined): Images {
  const [attached, setAttached] = useState<readonly Attached[]>([]);
  const newest = useRef(attached);
  newest.current = attached;
  const drop = (images: readonly Attached[]) => {
    for (const image of images) URL.revokeObjectURL(image.address);
  };
  useEffect(
    () => () => {
      drop(newest.current);
      setAttached([]);
    },
    [session],
  );
  const change = (key: string, changed: Partial<Attached>) => setAttached((all) => all.map((image) => (image.key === key ? { ...image, ...changed } : image)));
  const give = async (image: Attached) => {
    if (!session || !image.file) return;
    try {
      change(image.key, { state: "there", digest: (await addImage(session, image.file)).digest });
    } catch (error) {
      change(image.key, { state: "failed", error });
    }
  };
  return {
    attached,
    add(files) {
      const room = MESSAGE_IMAGES - attached.length;
      const fit = files.filter((file) => unfit(file) === undefined).slice(0, Math.max(room, 0));
      const taken = fit.map((file): Attached => ({ ...attachedOf(file), state: session ? "adding" : "there" }));
      setAttached([...attached, ...taken]);
      for (const image of taken) void give(image);
      const refused = files.find((file) => !fit.includes(file));
      return refused && { why: unfit(refused) ?? "count", name: refused.name };
    },
    remove(key) {
      drop(attached.filter((image) => image.key === key));
      setAttached((all) => all.filter((image) => image.key !== key));
    },
    putBack(images) {
      const back = images.map((image): Attached => {
        if ("bytes" in image) return attachedOf(image.bytes);
        return { key: idempotencyKey(), name: "", address: imageAddress(session ?? "", image.digest), digest: image.digest, state: "there" };
      });
      setAttached((all) => [...back, ...all]);
    },
    take() {
      drop(attached);
      setAttached([]);
      return attached.flatMap((image): OutgoingImage[] => (image.digest ? [{ digest: image.digest }] : image.file ? [{ bytes: image.file }] : []));
    },
  };
}

function attachedOf(file: File): Attached {
  return { key: idempotencyKey(), name: file.name, address: URL.createObjectURL(file), file, state: "there" };
}

function unfit(file: File): Unfit | undefined {
  if (!IMAGE_TYPES.includes(file.type)) return "type";
  return file.size > IMAGE_BYTES ? "size" : undefined;
}
