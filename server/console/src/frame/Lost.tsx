import { Compass } from "lucide-react";
import { Link, type ErrorComponentProps, useRouter } from "@tanstack/react-router";
import { useTranslation } from "react-i18next";
import { Empty } from "@/ui/Empty";
import { ErrorNote } from "@/ui/ErrorNote";

/** An address without a page. */
export function NotFound() {
  const { t } = useTranslation("frame");
  return (
    <main className="flex h-full flex-1 items-center justify-center">
      <Empty
        icon={Compass}
        title={t("notFound")}
        action={
          <Link to="/chat" className="font-medium text-accent underline">
            {t("openChat")}
          </Link>
        }
      >
        {t("notFoundHint")}
      </Empty>
    </main>
  );
}

/** A page that failed. The rest of the console goes on. */
export function PageFailed({ error, reset }: ErrorComponentProps) {
  const { t } = useTranslation("frame");
  const router = useRouter();
  const again = () => {
    reset();
    void router.invalidate();
  };
  return (
    <main className="flex h-full flex-1 items-center justify-center p-4">
      <ErrorNote error={error} title={t("pageFailed")} onRetry={again} className="w-full max-w-lg" />
    </main>
  );
}
