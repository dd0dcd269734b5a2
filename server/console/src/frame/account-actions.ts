import { useTranslation } from "react-i18next";
import { answer, api } from "@/api/client";
import { leave } from "@/state/person";
import { sayFailed } from "@/ui/Toast";

/** Signs this browser out. Nothing of the person stays in this browser or in the page's memory. */
export async function signOut(): Promise<void> {
  await answer(api.POST("/api/v1/browser/sign-out"));
  leave("/sign-in");
}

/** Signs out from a menu, and says in a corner why that failed. */
export function useSignOut(): () => void {
  const { t } = useTranslation("frame");
  return () => void signOut().catch((error: unknown) => sayFailed(t("notSignedOut"), error));
}
