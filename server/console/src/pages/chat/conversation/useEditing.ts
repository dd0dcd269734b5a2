import { useCallback, useState } from "react";
import { useTranslation } from "react-i18next";
import { idempotencyKey } from "@/api/client";
import { rewind } from "@/api/turns";
import { say } from "@/ui/Toast";
import type { Editing } from "../composer/Composer";
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
export function useEditing(session: string): EditingState {
  const { t } = useTranslation("transcript");
  const [asked, setAsked] = useState<Wanted | undefined>();
  const [editing, setEditing] = useState<Editing | undefined>();
  const told = useCallback(
    (files: { restored: boolean }[]) => {
      if (files.length === 0) return;
      const left = files.filter((file) => !file.restored).length;
      say(left > 0 ? t("filesLeft", { count: left }) : t("filesBack", { count: files.length }), left > 0);
    },
    [t],
  );
  const choose = async (choice: RewindChoice) => {
    if (!asked) return;
    // One key: sent again after it broke off, it goes on where it stopped.
    const key = idempotencyKey();
    const back = async () => {
      const { files } = await rewind(session, asked.turn, { conversation: choice !== "files", files: choice !== "conversation" }, key);
      told(files);
    };
    if (choice === "files") {
      await back();
    } else {
      // In one step: the dialog gives the focus back before the input takes it.
      setAsked(undefined);
      setEditing({ ...asked, before: back });
    }
  };
  return {
    asked,
    editing,
    ask: useCallback((turn: string, text: string) => setAsked({ turn, text }), []),
    choose,
    dismiss: useCallback(() => setAsked(undefined), []),
    done: useCallback(() => setEditing(undefined), []),
  };
}
