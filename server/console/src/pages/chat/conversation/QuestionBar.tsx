import { ArrowUp, MessageCircleQuestion } from "lucide-react";
import { useTranslation } from "react-i18next";
import { useIsInSight } from "./approval/sight";

/** Says above the input that questions wait, while none of their cards is in sight. */
export function QuestionBar({ ids, onShow }: { ids: readonly string[]; onShow: (id: string) => void }) {
  const { t } = useTranslation("transcript");
  const isInSight = useIsInSight(ids);
  const first = ids[0];
  if (isInSight || first === undefined) return null;
  return (
    <button
      type="button"
      onClick={() => onShow(first)}
      className="late touchable mb-2 flex w-full items-center gap-2 rounded-control bg-warn-soft px-3 py-1.5 text-left text-dense font-medium text-warn"
    >
      <MessageCircleQuestion aria-hidden className="size-4 shrink-0" />
      <span className="min-w-0 flex-1">{t("questionsWait", { count: ids.length })}</span>
      <ArrowUp aria-hidden className="size-4 shrink-0" />
    </button>
  );
}
