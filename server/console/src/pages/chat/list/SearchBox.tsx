import { Search, X } from "lucide-react";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { type KeyboardEvent, type Ref, useEffect, useState } from "react";
import { useTranslation } from "react-i18next";
import { IconButton } from "@/ui/Button";
import { Input } from "@/ui/Field";

/** The pause in typing after which the search begins, in milliseconds. */
const PAUSE_MS = 200;
/** The longest text that is searched for. */
const SEARCH_LENGTH = 200;

/** Searches the titles of the chats. What is searched for stands in the page's address. */
export function SearchBox({ ref }: { ref: Ref<HTMLInputElement> }) {
  const { t } = useTranslation("chat");
  const navigate = useNavigate();
  const { search = "" } = useSearch({ from: "/frame/chat" });
  const [typed, setTyped] = useState(search);
  const [told, setTold] = useState(search);
  if (told !== search) {
    // The address changed by itself, such as by the way back.
    setTold(search);
    setTyped(search);
  }
  useEffect(() => {
    const wanted = typed.trim();
    if (wanted === search) return;
    const timer = setTimeout(() => {
      setTold(wanted);
      void navigate({ to: ".", search: (before) => ({ ...before, search: wanted || undefined }), replace: true });
    }, PAUSE_MS);
    return () => clearTimeout(timer);
  }, [typed, search, navigate]);
  const hear = (event: KeyboardEvent<HTMLInputElement>) => {
    if (event.nativeEvent.isComposing || event.key !== "Escape") return;
    if (typed) setTyped("");
    else event.currentTarget.blur();
    event.preventDefault();
  };
  return (
    <div className="relative px-3 pb-2">
      <Search aria-hidden className="pointer-events-none absolute top-2 left-5 size-4 text-faint pointer-coarse:top-3.5" />
      <Input ref={ref} type="search" aria-label={t("listSearch")} placeholder={t("listSearch")} maxLength={SEARCH_LENGTH} value={typed} onChange={(event) => setTyped(event.target.value)} onKeyDown={hear} className="pr-8 pl-8 text-dense [&::-webkit-search-cancel-button]:hidden" />
      {typed && <IconButton size="sm" icon={X} label={t("listSearchClear")} onClick={() => setTyped("")} className="absolute top-0.5 right-4" />}
    </div>
  );
}
