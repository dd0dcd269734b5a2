import { useQuery } from "@tanstack/react-query";
import { type ClipboardEvent, type DragEvent, type KeyboardEvent, type RefObject, useId, useLayoutEffect, useState } from "react";
import { useTranslation } from "react-i18next";
import { sessionQuery } from "@/api/sessions";
import { MESSAGE_BYTES } from "@/api/messages";
import { bytes } from "@/format/number";
import { cx } from "@/ui/class";
import { ErrorNote } from "@/ui/ErrorNote";
import { AFTER_QUESTIONS } from "../conversation/approval/focus";
import { Actions } from "./Actions";
import { useChosenModel } from "./chips/ModelChip";
import { useChoices } from "./choices";
import { CompletionList } from "./CompletionList";
import type { Completion } from "./complete";
import type { ComposerProps, Editing } from "./Composer";
import { usePlace } from "./place";
import { Thumbnails } from "./Thumbnails";
import { useCompletions } from "./useCompletions";
import type { Images, Unfit } from "./useImages";
import { type How, useSend } from "./useSend";

interface BoxProps extends Pick<ComposerProps, "session" | "working" | "waits" | "stops" | "disabledReason" | "onEditDone" | "onEditLast"> {
  area: RefObject<HTMLTextAreaElement | null>;
  user: string;
  images: Images;
  text: string;
  editing: Editing | undefined;
  onText: (text: string) => void;
  /** Puts a text that was on its way back into the input. */
  onGiveBack: (text: string) => void;
}

/** The most lines that the box shows at once, each of 20 px, and its padding. */
const HEIGHT_PX = 10 * 20 + 24;
/** A text that is longer is not taken: a page could not lay it out. In UTF-16 units. */
const LONGEST_TEXT = 1_000_000;
/** On a touch screen Enter begins a line: its keyboard has no other key for that. */
const TOUCH = matchMedia("(pointer: coarse)");

/** The box that a person writes in, with its images and its buttons. */
export function Box({ session, working, waits, stops, disabledReason, onEditDone, onEditLast, area, user, images, text, editing, onText, onGiveBack }: BoxProps) {
  const { t } = useTranslation("chat");
  const id = useId();
  const [cursor, setCursor] = useState(text.length);
  const [refused, setRefused] = useState<string>();
  const [dropping, setDropping] = useState(false);
  const place = usePlace(session);
  const choices = useChoices();
  const directory = useQuery({ ...sessionQuery(session ?? ""), enabled: session !== undefined }).data?.directory;
  const model = useChosenModel(session);
  const { send, busy, error, forget } = useSend({ user, session, text, editing, images, onText, onGiveBack, onEditDone });
  const completions = useCompletions({
    session,
    text,
    cursor,
    commands: !editing,
    place: place?.value,
    online: place?.state === "online",
    directory: (session ? directory : choices.directory) ?? "",
  });
  const { list } = completions;
  const disabled = disabledReason !== undefined;
  const size = sizeOf(text);
  const tooLong = size > MESSAGE_BYTES;
  const ready = !disabled && !busy && !tooLong && text.trim() !== "" && images.attached.every((image) => image.state === "there");

  useLayoutEffect(() => {
    const box = area.current;
    const frame = box?.parentElement;
    if (!box || !frame) return;
    // What is around keeps its place while the text is measured, or else the conversation above is scrolled by it.
    frame.style.minHeight = `${frame.offsetHeight}px`;
    box.style.height = "0";
    box.style.height = `${Math.min(box.scrollHeight, HEIGHT_PX)}px`;
    frame.style.minHeight = "";
  }, [area, text]);
  useLayoutEffect(() => {
    // The text of an earlier message is there to be changed at once.
    if (editing?.turn) area.current?.focus();
  }, [area, editing?.turn]);

  const write = (written: string) => {
    if (written.length > LONGEST_TEXT) {
      setRefused(t("inputPasteTooLong", { size: bytes(sizeOf(written)), most: bytes(MESSAGE_BYTES) }));
      return;
    }
    setRefused(undefined);
    forget();
    onText(written);
  };
  const complete = (item: Completion) => {
    if (!list) return;
    const at = list.word.start + item.insert.length;
    write(text.slice(0, list.word.start) + item.insert + text.slice(cursor));
    setCursor(at);
    requestAnimationFrame(() => area.current?.setSelectionRange(at, at));
  };
  const submit = (how: How) => {
    if (ready) void send(how);
  };
  // The button that was pressed may go, or can be pressed no more: what is typed next is meant for the input. On a touch
  // screen the focus would bring its keyboard up.
  const focus = () => {
    if (!TOUCH.matches) area.current?.focus();
  };
  const sendByPointer = (how: How) => {
    submit(how);
    focus();
  };
  const hear = (event: KeyboardEvent<HTMLTextAreaElement>) => {
    // An input method's keys are its own; some browsers tell its last one only by this code.
    if (event.nativeEvent.isComposing || event.keyCode === 229) return;
    const item = list?.items[list.at];
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) submit("steer");
    else if (list && event.key === "Escape") completions.dismiss();
    else if (item && event.key === "ArrowDown") completions.step(1);
    else if (item && event.key === "ArrowUp") completions.step(-1);
    else if (item && event.key === "Tab" && !event.shiftKey) complete(item);
    else if (item?.whole && event.key === "Enter" && !event.shiftKey) void send("steer", item.name);
    else if (item && event.key === "Enter" && !event.shiftKey && !isComplete(item, text)) complete(item);
    else if (event.key === "Enter" && !event.shiftKey && !TOUCH.matches) submit("steer");
    else if (event.key === "ArrowUp" && text === "" && !editing && onEditLast) onEditLast();
    else if (event.key === "Escape" && editing) onEditDone?.();
    // The keys of the list count again.
    else if (event.key === "Escape") event.currentTarget.blur();
    else return;
    event.preventDefault();
  };
  const add = (files: readonly File[]) => {
    const unfit = images.add(files);
    setRefused(unfit && t(IMAGE_WORDS[unfit.why], { name: unfit.name }));
  };
  const paste = (event: ClipboardEvent) => {
    const files = [...event.clipboardData.files];
    // Programs put a picture of a text beside the text: then the text is meant.
    if (files.length === 0 || event.clipboardData.types.includes("text/plain")) return;
    event.preventDefault();
    add(files);
  };
  const drop = (event: DragEvent) => {
    if (event.dataTransfer.files.length === 0 || disabled) return;
    event.preventDefault();
    setDropping(false);
    add([...event.dataTransfer.files]);
  };
  const problem = refused ?? (tooLong ? t("inputTooLong", { size: bytes(size), most: bytes(MESSAGE_BYTES) }) : undefined);
  const blind = images.attached.length > 0 && model && !model.sees ? t("inputBlind", { model: model.name }) : undefined;
  return (
    <div className="flex flex-col gap-2">
      {error !== undefined && <ErrorNote error={error} title={t("inputNotSent")} />}
      {(problem ?? blind) && (
        <p role="status" className={cx("px-3 text-dense wrap-anywhere", problem ? "text-bad" : "text-warn")}>
          {problem ?? blind}
        </p>
      )}
      <div
        onDragOver={(event) => {
          if (!event.dataTransfer.types.includes("Files") || disabled) return;
          event.preventDefault();
          setDropping(true);
        }}
        onDragLeave={() => setDropping(false)}
        onDrop={drop}
        className={cx("relative rounded-card border bg-surface focus-within:border-accent", dropping ? "border-accent bg-accent-soft" : "border-line-strong", disabled && "opacity-60")}
      >
        {list && <CompletionList id={id} list={list} runner={place?.name ?? ""} below={session === undefined} onPoint={completions.point} onChoose={complete} />}
        <Thumbnails images={images.attached} onRemove={images.remove} />
        <textarea
          ref={area}
          {...{ [AFTER_QUESTIONS]: "" }}
          rows={1}
          aria-label={t("inputLabel")}
          aria-autocomplete="list"
          aria-controls={list ? id : undefined}
          aria-activedescendant={list?.items[list.at] ? `${id}-${list.at}` : undefined}
          aria-invalid={tooLong || undefined}
          placeholder={placeholder(t, { fresh: session === undefined, working, waits })}
          disabled={disabled}
          autoFocus={!TOUCH.matches}
          value={text}
          onChange={(event) => {
            write(event.target.value);
            setCursor(event.target.selectionStart);
          }}
          onSelect={(event) => setCursor(event.currentTarget.selectionStart)}
          onKeyDown={hear}
          onPaste={paste}
          onBlur={completions.dismiss}
          enterKeyHint={TOUCH.matches ? "enter" : "send"}
          className="block w-full resize-none bg-transparent px-3 pt-3 pb-1 placeholder:text-faint focus-visible:outline-none"
        />
        <Actions session={session} working={working} stops={stops} ready={ready} busy={busy} hasText={text.trim() !== ""} disabled={disabled} onSend={sendByPointer} onStop={focus} onFiles={add} />
      </div>
    </div>
  );
}

const IMAGE_WORDS = { type: "inputImageType", size: "inputImageSize", count: "inputImageCount" } as const satisfies Record<Unfit, string>;

function placeholder(t: ReturnType<typeof useTranslation<"chat">>["t"], { fresh, working, waits }: { fresh: boolean; working: boolean; waits: boolean }): string {
  if (fresh) return t("inputPlaceholderNew");
  if (waits) return t("inputPlaceholderWaits");
  return working ? t("inputPlaceholderWorking") : t("inputPlaceholder");
}

/** True if the text is the command already: then Enter sends it, and the server says what it lacks. */
function isComplete(item: Completion, text: string): boolean {
  return text.trimEnd() === item.name;
}

/** The bytes of a text in UTF-8. */
function sizeOf(text: string): number {
  // A UTF-16 unit has at most three bytes: most texts need not be counted.
  return text.length * 3 <= MESSAGE_BYTES ? text.length : new TextEncoder().encode(text).length;
}
