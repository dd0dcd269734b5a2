import { Brain } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { duration } from "@/format/time";
import { Markdown } from "@/markdown/Markdown";
import type { AnswerPart } from "@/transcript/model";
import { Disclosure } from "./Disclosure";
import { useConversation, useFold } from "./context";
import { useNow } from "./time";

/** The longest thoughts that are shown, in characters. */
const MOST = 100_000;

/** The times of thoughts that this page saw come, in milliseconds, by their keys. */
const measured = new Map<string, number>();
const MOST_MEASURED = 500;

/** Thoughts of the model, folded to one line. `tookMs` is their time if it is known, or else 0. */
export function Thoughts({ id, part, tookMs }: { id: string; part: AnswerPart; tookMs: number }) {
  const { t } = useTranslation("transcript");
  const [open, toggle] = useFold(id, false);
  const { live } = useConversation();
  const took = useMeasured(id, part.open) || tookMs;
  const words = part.open ? <Elapsed /> : took > 0 ? t("thoughtFor", { time: duration(took) }) : t("thoughts");
  const text = part.text.length > MOST ? `${part.text.slice(0, MOST)}…` : part.text;
  return (
    <Disclosure icon={Brain} open={open} onToggle={toggle} works={part.open && live} head={<span className="text-muted">{words}</span>} tail={part.open && !open ? lastWords(part.text) : undefined}>
      <div className="border-l-2 border-line pl-4 text-muted">
        <Markdown text={text} open={part.open} />
      </div>
    </Disclosure>
  );
}

function Elapsed() {
  const { t } = useTranslation("transcript");
  const [since] = useState(() => Date.now());
  useNow();
  return t("thinkingFor", { time: duration(Math.max(0, Date.now() - since)) });
}

/** The time for which thoughts came while this page watched them from their begin. */
function useMeasured(id: string, open: boolean): number {
  const since = useRef<number | undefined>(undefined);
  const [took, setTook] = useState(measured.get(id) ?? 0);
  useEffect(() => {
    if (open) {
      since.current ??= Date.now();
    } else if (since.current !== undefined) {
      const time = Date.now() - since.current;
      since.current = undefined;
      measured.set(id, time);
      if (measured.size > MOST_MEASURED) measured.delete(measured.keys().next().value ?? "");
      setTook(time);
    }
  }, [id, open]);
  return took;
}

function lastWords(text: string): string {
  const end = text.slice(-240).trimEnd();
  return end.slice(end.lastIndexOf("\n") + 1);
}
