import { ArrowUp, MessageCircleQuestion } from "lucide-react";
import { useEffect, useState } from "react";
import { useTranslation } from "react-i18next";

/** Says above the input that questions wait, while none of their cards is in sight. */
export function QuestionBar({ ids, onShow }: { ids: readonly string[]; onShow: (id: string) => void }) {
  const { t } = useTranslation("transcript");
  const hidden = useOutOfSight(ids);
  const first = ids[0];
  if (!hidden || first === undefined) return null;
  return (
    <button
      type="button"
      onClick={() => onShow(first)}
      className="touchable fade-in mb-2 flex w-full items-center gap-2 rounded-control bg-warn-soft px-3 py-1.5 text-left text-dense font-medium text-warn"
    >
      <MessageCircleQuestion aria-hidden className="size-4 shrink-0" />
      <span className="min-w-0 flex-1">{t("questionsWait", { count: ids.length })}</span>
      <ArrowUp aria-hidden className="size-4 shrink-0" />
    </button>
  );
}

/** True while no card of these questions is in sight. */
function useOutOfSight(ids: readonly string[]): boolean {
  const [hidden, setHidden] = useState(false);
  const key = ids.join(" ");
  useEffect(() => {
    if (key === "") return setHidden(false);
    const inSight = new Set<Element>();
    const observer = new IntersectionObserver((entries) => {
      for (const entry of entries) {
        if (entry.isIntersecting) inSight.add(entry.target);
        else inSight.delete(entry.target);
      }
      setHidden(inSight.size === 0);
    });
    for (const id of key.split(" ")) {
      const card = document.getElementById(`approval-${id}`);
      if (card) observer.observe(card);
    }
    // A card that is not painted at all is never seen either.
    const timer = setTimeout(() => setHidden(inSight.size === 0), 200);
    return () => {
      clearTimeout(timer);
      observer.disconnect();
    };
  }, [key]);
  return hidden;
}
