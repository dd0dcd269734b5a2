import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { idempotencyKey } from "@/api/client";
import { runCommand } from "@/api/commands";
import { queries } from "@/api/query";
import { sessionsChanged } from "@/api/sessions";
import { reasonOf } from "@/ui/failure";
import { showAnswer } from "./answers";
import { begin } from "./choices";
import type { Editing } from "./Composer";
import { setDraft } from "./draft";
import { post } from "./outbox";
import type { Images } from "./useImages";

/** The way of a message into a turn that works: into it, or after it. */
export type How = "steer" | "queue";

interface Message {
  user: string;
  session: string | undefined;
  text: string;
  editing: Editing | undefined;
  images: Images;
  onText: (text: string) => void;
  onGiveBack: (text: string) => void;
  onEditDone: (() => void) | undefined;
}

/** Sends what stands in the input: a message, or a command, which begins with a slash. */
export function useSend({ user, session, text, editing, images, onText, onGiveBack, onEditDone }: Message) {
  const navigate = useNavigate();
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();

  const open = (id: string) => navigate({ to: "/chat/$session", params: { session: id }, search: (before) => ({ ...before, new: undefined }) });

  const message = async (how: How) => {
    await editing?.before?.();
    const id = session ?? (await begin()).id;
    showAnswer(id, undefined);
    post(user, id, { text, images: images.take(), how });
    if (editing) onEditDone?.();
    else onText("");
    if (session !== undefined) return;
    await Promise.all([open(id), sessionsChanged()]);
  };

  /** Runs a command. One that begins a chat shows its refusal there. */
  const command = async (line: string) => {
    const of = session ?? (await begin()).id;
    onText("");
    try {
      const done = await runCommand(of, { line, client_id: idempotencyKey() });
      const next = done.session?.id ?? of;
      showAnswer(next, { line, shown: done.shown });
      if (done.draft) setDraft(user, next, done.draft);
      if (next !== session) await open(next);
      await Promise.all(["sessions", "settings", "runners"].map((topic) => queries.invalidateQueries({ queryKey: [topic] })));
    } catch (failure) {
      if (session !== undefined) {
        onGiveBack(line);
        throw failure;
      }
      setDraft(user, of, line);
      showAnswer(of, { line, shown: [{ text: reasonOf(failure) }] });
      await Promise.all([open(of), sessionsChanged()]);
    }
  };

  const send = async (how: How, written = text) => {
    const isCommand = written.startsWith("/") && !editing;
    setBusy(true);
    setError(undefined);
    try {
      await (isCommand ? command(written.trimEnd()) : message(how));
    } catch (failure) {
      setError(failure);
    } finally {
      setBusy(false);
    }
  };
  return { send, busy, error, forget: () => setError(undefined) };
}
