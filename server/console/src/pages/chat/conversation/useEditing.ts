import { useCallback, useEffect, useState } from "react";
import { useTranslation } from "react-i18next";
import { idempotencyKey } from "@/api/client";
import { rewind } from "@/api/turns";
import type { Snapshot } from "@/transcript/snapshot";
import { say } from "@/ui/Toast";
import type { Editing } from "../composer/Composer";
import { putBack } from "../composer/draft";
import { type Edit, setEdit, useEdit } from "./edit";
import type { RewindChoice } from "./RewindDialog";

interface Wanted {
  readonly turn: string;
  readonly text: string;
}

/** The editing of an earlier message: first the person says what goes back, then the text stands in the input. */
export interface EditingState {
  /** The message about which is asked what goes back with it. */
  readonly asked: Wanted | undefined;
  /** The edit, for the input. Nothing goes back until the person sends. */
  readonly editing: Editing | undefined;
  readonly ask: (turn: string, text: string) => void;
  readonly choose: (choice: RewindChoice) => Promise<void>;
  readonly dismiss: () => void;
  readonly done: () => void;
}

/** See {@link EditingState}. */
export function useEditing(user: string, session: string, { status, items }: Snapshot): EditingState {
  const { t } = useTranslation("transcript");
  const [asked, setAsked] = useState<Wanted | undefined>();
  const edit = useEdit(user, session);
  const isLeft = edit !== undefined && !items.some((item) => item.kind === "message" && item.turn === edit.turn && item.rewindable);
  useEffect(() => {
    // Asked once: while an edit is sent, its message is not there any more either.
    if (status !== "ready" || !edit || !isLeft) return;
    putBack(user, session, edit.text);
    setEdit(user, session, undefined);
  }, [status, user, session]);
  const back = async ({ turn, key }: Pick<Edit, "turn" | "key">, parts: { conversation: boolean; files: boolean }) => {
    const { files } = await rewind(session, turn, parts, key);
    if (files.length === 0) return;
    const left = files.filter((file) => !file.restored).length;
    say(left > 0 ? t("filesLeft", { count: left }) : t("filesBack", { count: files.length }), left > 0);
  };
  const choose = async (choice: RewindChoice) => {
    if (!asked) return;
    const key = idempotencyKey();
    if (choice === "files") return back({ ...asked, key }, { conversation: false, files: true });
    // In one step: the dialog gives the focus back before the input takes it.
    setAsked(undefined);
    setEdit(user, session, { ...asked, files: choice === "both", key });
  };
  return {
    asked,
    editing: edit && {
      turn: edit.turn,
      text: edit.text,
      onText: (text) => setEdit(user, session, { ...edit, text }),
      before: () => back(edit, { conversation: true, files: edit.files }),
    },
    ask: useCallback((turn: string, text: string) => setAsked({ turn, text }), []),
    choose,
    dismiss: useCallback(() => setAsked(undefined), []),
    done: useCallback(() => setEdit(user, session, undefined), [user, session]),
  };
}
