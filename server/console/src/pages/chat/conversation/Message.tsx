import { Clock3, CornerDownRight, Pencil } from "lucide-react";
import { memo } from "react";
import { useTranslation } from "react-i18next";
import { bytes } from "@/format/number";
import { moment, timeOfDay } from "@/format/time";
import type { MessageItem } from "@/transcript/model";
import { IconButton } from "@/ui/Button";
import { cx } from "@/ui/class";
import { CopyButton } from "@/ui/CopyLine";
import { useConversation, useFold } from "./context";
import { Images } from "./Images";

/** The letters of a message that are shown at first, and at all. */
const FIRST = 6000;
const MOST = 300_000;

/** A message of a person, in full width on a light ground. Its author, time and actions come with the pointer or the focus. */
export const Message = memo(function Message({ item }: { item: MessageItem }) {
  const { t, i18n } = useTranslation("transcript");
  const { people, me, works, onEdit } = useConversation();
  const name = people[item.by];
  const isOwn = item.by === me;
  return (
    <article tabIndex={0} aria-label={isOwn || !name ? t("messageOwn") : t("messageOf", { name })} className="group relative rounded-card bg-accent-soft px-4 py-3">
      {!isOwn && name && <p className="mb-1 text-meta font-medium text-muted">{name}</p>}
      <Words id={item.id} text={item.compacts !== null ? t("messageCompacts", { focus: item.compacts }) : item.text} />
      {item.images.length > 0 && <Images images={item.images} />}
      <State item={item} />
      <div
        className={cx(
          "absolute -top-3.5 right-3 flex items-center gap-0.5 rounded-control border border-line bg-raised pl-2.5 opacity-0 transition-opacity duration-100",
          "group-focus-within:opacity-100 group-hover:opacity-100 group-focus:opacity-100",
        )}
      >
        <time dateTime={new Date(item.at).toISOString()} title={moment(new Date(item.at).toISOString(), i18n.language)} className="text-meta text-muted">
          {timeOfDay(item.at, i18n.language)}
        </time>
        <CopyButton text={item.text} label={t("copyMessage")} />
        {item.rewindable && item.turn !== null && (
          <IconButton size="sm" icon={Pencil} label={works ? t("editWhileWorking") : t("edit")} disabled={works} onClick={() => onEdit(item.turn ?? "", item.text)} />
        )}
      </div>
    </article>
  );
});

function Words({ id, text }: { id: string; text: string }) {
  const { t } = useTranslation("transcript");
  const [open, toggle] = useFold(id, false);
  const isLong = text.length > FIRST + 500;
  const shown = isLong ? text.slice(0, open ? MOST : FIRST) : text;
  return (
    <>
      <p className="max-w-[72ch] text-prose wrap-anywhere whitespace-pre-wrap">{shown}</p>
      {isLong && (
        <button type="button" aria-expanded={open} onClick={toggle} className="touchable text-dense text-accent underline">
          {open ? t("showLess") : t("showAllOf", { size: bytes(text.length) })}
        </button>
      )}
    </>
  );
}

/** How far the message is: nothing is said of one that the model has. */
function State({ item }: { item: MessageItem }) {
  const { t } = useTranslation("transcript");
  const { turn } = useConversation();
  if (item.rewound) return null;
  if (item.waiting && item.sent === "steered" && item.turn !== turn) return <Line words={t("messageMissed")} />;
  if (item.sent === "left") return <Line words={t("messageLeft")} />;
  if (!item.waiting) return item.sent === "steered" ? <Line words={t("messageSteered")} /> : null;
  return <Line waits words={item.sent === "steered" ? t("messageSteering") : item.sent === "queued" ? t("messageQueued") : t("messageWaiting")} />;
}

function Line({ words, waits = false }: { words: string; waits?: boolean }) {
  const Icon = waits ? Clock3 : CornerDownRight;
  return (
    <p className="mt-1 flex items-center gap-1.5 text-meta text-muted">
      <Icon aria-hidden className="size-3.5" />
      {words}
    </p>
  );
}
