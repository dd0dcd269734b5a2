import { Activity, ChartColumn, Inbox, type LucideIcon, MessageSquare, Server, Settings, ShieldCheck } from "lucide-react";

/** A page of the rail. */
export interface PlaceOfRail {
  to: "/chat" | "/inbox" | "/runners" | "/settings" | "/admin" | "/usage" | "/status";
  name: "chat" | "inbox" | "runners" | "settings" | "admin" | "usage" | "status";
  icon: LucideIcon;
  /** True if only admins have it. */
  admins?: boolean;
}

/** The pages of the rail, the most used first. */
export const PLACES: readonly PlaceOfRail[] = [
  { to: "/chat", name: "chat", icon: MessageSquare },
  { to: "/inbox", name: "inbox", icon: Inbox },
  { to: "/runners", name: "runners", icon: Server },
  { to: "/usage", name: "usage", icon: ChartColumn },
  { to: "/admin", name: "admin", icon: ShieldCheck, admins: true },
  { to: "/status", name: "status", icon: Activity },
  { to: "/settings", name: "settings", icon: Settings },
];
