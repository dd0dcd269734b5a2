import { Outlet } from "@tanstack/react-router";

/** The page's place; its content follows. */
export function TerminalPage() {
  return <Outlet />;
}
