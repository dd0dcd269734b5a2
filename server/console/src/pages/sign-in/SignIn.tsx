import { useSearch } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import { useTranslation } from "react-i18next";
import icon from "@/icon.svg";
import { chooseLanguage, LANGUAGES, language } from "@/i18n";
import { Card } from "@/ui/Page";
import { CodeForm } from "./CodeForm";

/** The code in the address's fragment, which a browser sends to no server. */
function codeOfAddress(): string {
  return new URLSearchParams(location.hash.slice(1)).get("code") ?? "";
}

/** Where a person without a cookie comes first: by the server's first link, by an invitation, or to come back. */
export function SignIn() {
  const { t } = useTranslation("signIn");
  const { next } = useSearch({ from: "/sign-in" });
  const [code, setCode] = useState(codeOfAddress);
  const other = language() === "zh" ? "en" : "zh";
  useEffect(() => {
    // The code must not stay in the history. Another link may be opened in this tab.
    const take = () => {
      const given = codeOfAddress();
      if (given) setCode(given);
      if (location.hash) history.replaceState(history.state, "", location.pathname + location.search);
    };
    take();
    window.addEventListener("hashchange", take);
    return () => window.removeEventListener("hashchange", take);
  }, []);
  // The page is loaded anew: its memory may hold something of the person before, and the way back must not lead here.
  const enter = () => location.replace(next ?? "/chat");
  return (
    <main className="flex h-full flex-col items-center overflow-y-auto px-4 pt-[14dvh] pb-8">
      <img src={icon} alt="" width={40} height={40} />
      <h1 className="mt-4 text-title font-semibold">{code ? t("welcome") : t("title")}</h1>
      <p className="mt-1 mb-6 max-w-96 text-center text-muted">{code ? t("welcomeHint") : t("hint")}</p>
      <Card className="w-full max-w-96 p-6">
        <CodeForm key={code} code={code} onSignedIn={enter} />
        <details className="mt-4 text-dense text-muted">
          <summary>{t("noCode")}</summary>
          <ul className="mt-2 flex list-disc flex-col gap-1 pl-5">
            <li>{t("askAdmin")}</li>
            <li>
              {t("askOperator")} <code className="text-code">gantry-server sign-in-code</code>
            </li>
          </ul>
        </details>
      </Card>
      <button type="button" lang={other} className="touchable mt-6 text-dense text-muted hover:text-ink" onClick={() => void chooseLanguage(other)}>
        {LANGUAGES[other]}
      </button>
    </main>
  );
}
