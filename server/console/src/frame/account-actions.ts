import { answer, api } from "@/api/client";

/** Signs this browser out. The page is loaded anew, so that nothing of the person stays in its memory. */
export async function signOut(): Promise<void> {
  await answer(api.POST("/api/v1/browser/sign-out"));
  location.assign("/sign-in");
}
