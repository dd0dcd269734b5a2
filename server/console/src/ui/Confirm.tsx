import type { ReactNode } from "react";
import { FormDialog } from "./FormDialog";

interface ConfirmProps {
  open: boolean;
  onClose: () => void;
  title: string;
  /** What will happen, and what will not come back. */
  children: ReactNode;
  /** The verb on the button. */
  verb: string;
  danger?: boolean;
  /** Does it. The dialog closes once it is done, and shows why if it fails. */
  onConfirm: () => Promise<unknown>;
}

/** Asks before something that cannot be taken back. */
export function Confirm({ children, onConfirm, ...dialog }: ConfirmProps) {
  return (
    <FormDialog {...dialog} onSubmit={() => onConfirm().then(dialog.onClose)}>
      <div className="text-body text-muted">{children}</div>
    </FormDialog>
  );
}
