import { Link, useLocation } from "@tanstack/react-router";
import { ChevronLeft, ChevronRight } from "lucide-react";
import { useEffect, useRef } from "react";
import { useTranslation } from "react-i18next";
import { useMe } from "@/api/me";
import { cx } from "@/ui/class";
import { Page } from "@/ui/Page";
import { PARTS } from "./sections";

/** What a person sets for oneself. On a phone it is a list of its parts, each a page of its own. */
export function SettingsPage() {
  const { t } = useTranslation("settings");
  const hash = useLocation({ select: (location) => location.hash });
  const chosen = PARTS.find((part) => part.id === hash);
  const shown = chosen ?? PARTS[0];
  const content = useRef<HTMLDivElement>(null);
  const before = useRef(hash);
  useEffect(() => {
    if (before.current === hash) return;
    before.current = hash;
    content.current?.closest("main")?.scrollTo(0, 0);
    // On a phone the link that was pressed is not visible any more.
    if (chosen && !matchMedia("(min-width: 720px)").matches) content.current?.focus({ preventScroll: true });
  }, [hash, chosen]);
  return (
    <Page title={t("title")} wide>
      <div className="md:grid md:grid-cols-[11rem_minmax(0,1fr)] md:gap-10">
        <nav aria-label={t("title")} className={cx("md:sticky md:top-6 md:self-start", chosen && "max-md:hidden")}>
          <ul className="flex flex-col gap-0.5 max-md:divide-y max-md:divide-line max-md:overflow-hidden max-md:rounded-card max-md:border max-md:border-line max-md:bg-surface">
            {PARTS.map((part) => (
              <li key={part.id}>
                <Link
                  to="/settings"
                  hash={part.id}
                  aria-current={part.id === shown.id ? "page" : undefined}
                  className={cx(
                    "touchable flex h-9 items-center gap-2.5 px-2.5 text-muted hover:bg-hover hover:text-ink max-md:h-12 max-md:px-4 max-md:text-ink md:rounded-control md:text-dense",
                    part.id === shown.id && "md:bg-selected md:font-medium md:text-ink",
                  )}
                >
                  <part.icon aria-hidden className="size-4 shrink-0" strokeWidth={1.75} />
                  <span className="flex-1">{t(part.name)}</span>
                  {part.id === "runner" && <NowOnPhone />}
                  <ChevronRight aria-hidden className="size-4 text-faint md:hidden" />
                </Link>
              </li>
            ))}
          </ul>
        </nav>
        <div ref={content} tabIndex={-1} className={cx("min-w-0 outline-none", !chosen && "max-md:hidden")}>
          <Link to="/settings" className="touchable -mt-4 mb-1 -ml-1 inline-flex items-center gap-1 text-dense text-muted md:hidden">
            <ChevronLeft aria-hidden className="size-4" />
            {t("allSettings")}
          </Link>
          <shown.Content />
        </div>
      </div>
    </Page>
  );
}

/** The runner in use, in the list of a phone. */
function NowOnPhone() {
  const me = useMe();
  return <span className="max-w-40 truncate text-dense text-muted md:hidden">{me?.active_runner_name}</span>;
}
