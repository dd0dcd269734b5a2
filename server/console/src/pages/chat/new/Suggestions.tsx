import { useTranslation } from "react-i18next";
import { setDraft, useDraft } from "../composer/draft";

/** Three first messages. Choosing one puts it into the input, to be changed or sent. */
export function Suggestions({ user }: { user: string }) {
  const { t } = useTranslation("chat");
  const draft = useDraft(user, undefined);
  if (draft !== "") return null;
  return (
    <section aria-label={t("newSuggestions")} className="mt-6">
      <h2 className="mb-1 px-3 text-meta font-medium text-faint">{t("newSuggestions")}</h2>
      <ul>
        {([t("newSuggest1"), t("newSuggest2"), t("newSuggest3")] as const).map((text) => (
          <li key={text}>
            <button
              type="button"
              className="touchable w-full rounded-control px-3 py-1.5 text-left text-muted hover:bg-hover hover:text-ink"
              onClick={() => {
                setDraft(user, undefined, text);
                document.querySelector<HTMLElement>("textarea")?.focus();
              }}
            >
              {text}
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}
