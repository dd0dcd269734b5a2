import { ScrollText } from "lucide-react";
import { useTranslation } from "react-i18next";
import { Markdown } from "@/markdown/Markdown";

/** A plan that the agent proposes. */
export function PlanQuestion({ text }: { text: string }) {
  const { t } = useTranslation("transcript");
  return (
    <>
      <header className="flex items-center gap-2.5 px-4 pt-3 pb-2">
        <ScrollText aria-hidden className="size-4 shrink-0 text-warn" />
        <h3 className="font-semibold">{t("planProposed")}</h3>
      </header>
      <div className="mb-3 max-h-[60dvh] overflow-y-auto overscroll-contain border-y border-line px-4 py-3">
        <Markdown text={text} />
      </div>
    </>
  );
}
