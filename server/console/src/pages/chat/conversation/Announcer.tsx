import { useEffect, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import type { Snapshot } from "@/transcript/snapshot";

/** The longest text that is read out, in characters. */
const MOST = 400;

/** The newest items that are looked at: what is further up is not new. */
const NEWEST = 12;

/** Tells a screen reader politely what is new: an answer once it is complete, a question once it waits. */
export function Announcer({ snapshot }: { snapshot: Snapshot }) {
  const { t } = useTranslation("transcript");
  const [words, setWords] = useState("");
  const told = useRef<Set<string> | undefined>(undefined);
  useEffect(() => {
    if (snapshot.status !== "ready" || !snapshot.caughtUp) return;
    const complete = snapshot.items.slice(-NEWEST).filter((item) => item.kind === "answer" && item.record !== null);
    const ids = [...complete.map((item) => item.id), ...snapshot.facts.approvals.map((approval) => approval.id)];
    const before = told.current;
    told.current = new Set(ids);
    // The past is not news.
    if (!before) return;
    const question = snapshot.facts.approvals.find((approval) => !before.has(approval.id));
    if (question) return setWords(t("saysQuestion"));
    const answer = complete.findLast((item) => !before.has(item.id));
    if (answer?.kind !== "answer") return;
    const text = answer.parts.filter((part) => part.kind === "text").map((part) => part.text);
    if (text.length > 0) setWords(t("saysAnswer", { text: text.join("\n").slice(0, MOST) }));
  }, [snapshot, t]);
  return (
    <div aria-live="polite" className="sr-only">
      {words}
    </div>
  );
}
