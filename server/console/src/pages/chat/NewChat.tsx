import { Link } from "@tanstack/react-router";
import { ChevronLeft } from "lucide-react";
import { useTranslation } from "react-i18next";
import { mayWork, useMe } from "@/api/me";
import { OnlyLooks } from "@/frame/OnlyLooks";
import { useTitle } from "@/state/title";
import { Composer } from "./composer/Composer";
import { NoRunner, PlaceNote } from "./new/PlaceNote";
import { Suggestions } from "./new/Suggestions";

/** Where a chat begins: the input, and where its agent will work. */
export function NewChat() {
  const { t } = useTranslation("chat");
  useTitle(t("newTabTitle"));
  const me = useMe();
  const user = me?.user.id ?? "";
  return (
    <main className="flex min-h-0 flex-1 flex-col overflow-y-auto">
      <header className="px-2 pt-2 md:hidden">
        <Link to="/chat" search={(before) => ({ ...before, new: undefined })} className="touchable inline-flex items-center gap-1 pr-3 text-muted">
          <ChevronLeft aria-hidden className="size-5" />
          {t("newBack")}
        </Link>
      </header>
      {mayWork(me) ? (
        <div className="mx-auto flex w-full max-w-[46rem] flex-col px-4 pt-4 pb-8 md:pt-[20dvh]">
          <h1 className="mb-4 px-3 text-title font-semibold">{t("newTitle")}</h1>
          <NoRunner />
          <Composer session={undefined} working={false} waits={false} />
          <PlaceNote />
          <Suggestions user={user} />
        </div>
      ) : (
        <OnlyLooks />
      )}
    </main>
  );
}
