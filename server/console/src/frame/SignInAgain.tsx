import { useEffect, useState } from "react";
import { useTranslation } from "react-i18next";
import { onSignedOut } from "@/api/client";
import { queries } from "@/api/query";
import type { BrowserSignedIn } from "@/api/schema";
import { socket } from "@/live/socket";
import { CodeForm } from "@/pages/sign-in/CodeForm";
import { noteWho } from "@/state/person";
import { Dialog } from "@/ui/Dialog";

/**
 * Asks for a code above the page when the server says that this browser is not signed in any more. The page behind
 * stays as it is, so that nothing typed is lost, unless another person signs in.
 */
export function SignInAgain() {
  const { t } = useTranslation("signIn");
  const [needed, setNeeded] = useState(false);
  useEffect(() => onSignedOut(() => setNeeded(true)), []);
  const back = ({ user }: BrowserSignedIn) => {
    noteWho(user.id);
    setNeeded(false);
    socket.signedIn();
    void queries.invalidateQueries();
  };
  return (
    <Dialog open={needed} onClose={() => setNeeded(false)} dismissable={false} title={t("againTitle")} description={t("againWhy")}>
      <CodeForm onSignedIn={back} />
    </Dialog>
  );
}
