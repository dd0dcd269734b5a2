/** The edit of an earlier message. This browser keeps it like the draft, until it is sent or given up. */
import { useMemo } from "react";
import { nameOf, setUnsent, useUnsent } from "../composer/draft";

/** An edit of an earlier message that was not sent yet. */
export interface Edit {
  /** The turn of the message. */
  readonly turn: string;
  readonly text: string;
  /** True if the files go back too. */
  readonly files: boolean;
  /** The key of the step back: sent again after it broke off, it goes on where it stopped. */
  readonly key: string;
}

/** The edit of a session that was not sent yet. */
export function useEdit(user: string, session: string): Edit | undefined {
  const kept = useUnsent(nameOf("edit", user, session));
  return useMemo(() => editOf(kept), [kept]);
}

/** Changes the edit of a session; undefined forgets it. */
export function setEdit(user: string, session: string, edit: Edit | undefined): void {
  setUnsent(nameOf("edit", user, session), edit ? JSON.stringify(edit) : "");
}

function editOf(kept: string): Edit | undefined {
  try {
    const edit = JSON.parse(kept) as Partial<Edit>;
    const { turn, text, files, key } = edit;
    const isEdit = typeof turn === "string" && typeof text === "string" && typeof files === "boolean" && typeof key === "string";
    return isEdit ? { turn, text, files, key } : undefined;
  } catch {
    return undefined;
  }
}
