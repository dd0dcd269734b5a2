import { useNavigate } from "@tanstack/react-router";
import { useQuery } from "@tanstack/react-query";
import { Container, FolderOpen, Keyboard, type LucideIcon, MessageSquare, SquarePen, SquareTerminal, SunMoon } from "lucide-react";
import { type KeyboardEvent, useEffect, useMemo, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { isAdmin, useMe } from "@/api/me";
import { recentSessionsQuery } from "@/api/sessions";
import { chooseTheme } from "@/state/theme";
import { cx } from "@/ui/class";
import { Dialog } from "@/ui/Dialog";
import { Input } from "@/ui/Field";
import { isDark } from "./Account";
import { closeLayer, openLayer, useLayer } from "./layers";
import { PLACES } from "./places";

interface Entry {
  key: string;
  words: string;
  icon: LucideIcon;
  /** What kind of thing it is. */
  kind: string;
  run: () => void;
}

/** Entries that are shown at once. */
const AT_MOST = 20;

/** Every page, every recent chat and every action, by a few letters. */
export function Palette() {
  const { t } = useTranslation("frame");
  const open = useLayer("palette");
  return (
    <Dialog open={open} onClose={closeLayer} title={t("commandPalette")}>
      {open && <Finder />}
    </Dialog>
  );
}

function Finder() {
  const { t } = useTranslation("frame");
  const [typed, setTyped] = useState("");
  const [at, setAt] = useState(0);
  const entries = useEntries();
  const found = useMemo(() => entries.filter((entry) => matches(entry.words, typed)).slice(0, AT_MOST), [entries, typed]);
  const chosen = Math.min(at, found.length - 1);
  const list = useRef<HTMLUListElement>(null);
  useEffect(() => {
    // Some browsers give a promise back, and an effect may give back nothing but its end.
    void list.current?.children[chosen]?.scrollIntoView({ block: "nearest" });
  }, [chosen]);
  const hear = (event: KeyboardEvent) => {
    if (event.nativeEvent.isComposing) return;
    if (event.key === "ArrowDown") setAt(Math.min(chosen + 1, found.length - 1));
    else if (event.key === "ArrowUp") setAt(Math.max(chosen - 1, 0));
    else if (event.key === "Enter" && found[chosen]) found[chosen].run();
    else return;
    event.preventDefault();
  };
  return (
    <div onKeyDown={hear}>
      <Input
        autoFocus
        role="combobox"
        aria-expanded
        aria-controls="palette-entries"
        aria-activedescendant={found[chosen] ? `palette-${chosen}` : undefined}
        aria-label={t("typeCommand")}
        placeholder={t("typeCommand")}
        value={typed}
        onChange={(event) => {
          setTyped(event.target.value);
          setAt(0);
        }}
      />
      <ul ref={list} id="palette-entries" role="listbox" aria-label={t("commandPalette")} className="mt-2 h-[min(26rem,52dvh)] overflow-y-auto">
        {found.map((entry, place) => (
          <li
            key={entry.key}
            id={`palette-${place}`}
            role="option"
            aria-selected={place === chosen}
            onClick={entry.run}
            onPointerMove={() => setAt(place)}
            className={cx("touchable flex h-8 cursor-pointer items-center gap-2.5 rounded-control px-2 text-dense", place === chosen && "bg-selected font-medium")}
          >
            <entry.icon aria-hidden className={cx("size-4 shrink-0", place === chosen ? "text-accent" : "text-faint")} strokeWidth={1.75} />
            <span className="min-w-0 flex-1 truncate">{entry.words}</span>
            <span className="text-meta font-normal text-faint">{entry.kind}</span>
          </li>
        ))}
        {found.length === 0 && <li className="px-2 py-4 text-dense text-muted">{t("noCommand")}</li>}
      </ul>
    </div>
  );
}

/** True if all letters that were typed occur in this order. */
function matches(words: string, typed: string): boolean {
  let from = 0;
  const lower = words.toLowerCase();
  for (const letter of typed.toLowerCase().replace(/\s/g, "")) {
    from = lower.indexOf(letter, from) + 1;
    if (from === 0) return false;
  }
  return true;
}

function useEntries(): Entry[] {
  const { t, i18n } = useTranslation("frame");
  const navigate = useNavigate();
  const me = useMe();
  const sessions = useQuery(recentSessionsQuery).data?.sessions;
  return useMemo(() => {
    const go = (run: () => unknown) => () => {
      closeLayer();
      run();
    };
    const action = (icon: LucideIcon, words: string, run: () => unknown): Entry => ({ key: words, icon, words, kind: "", run: go(run) });
    const pages = PLACES.filter((place) => !place.admins || isAdmin(me)).map((place) => action(place.icon, t(place.name), () => navigate({ to: place.to })));
    const others = [
      action(SquarePen, t("newChat"), () => navigate({ to: "/chat" })),
      action(SquareTerminal, t("terminal"), () => navigate({ to: "/terminal" })),
      action(FolderOpen, t("files"), () => navigate({ to: "/files" })),
      action(Container, t("sandboxes"), () => navigate({ to: "/sandboxes" })),
      action(SunMoon, t("switchTheme"), () => chooseTheme(isDark() ? "light" : "dark")),
      action(Keyboard, t("keyboard"), () => openLayer("help")),
    ];
    const chats = (sessions ?? []).map((session) => ({
      key: session.id,
      icon: MessageSquare,
      words: session.title,
      kind: t("chat"),
      run: go(() => navigate({ to: "/chat/$session", params: { session: session.id } })),
    }));
    return [...others, ...pages, ...chats];
  }, [me, navigate, sessions, t, i18n.language]);
}
