import { Bell, Bot, CircleUser, KeyRound, type LucideIcon, MonitorSmartphone, Palette, Puzzle, Scale, Server, SlidersHorizontal } from "lucide-react";
import type { ComponentType } from "react";
import { AccountSection } from "./AccountSection";
import { AgentSection } from "./AgentSection";
import { AppearanceSection } from "./AppearanceSection";
import { ExtensionsSection } from "./extensions/ExtensionsSection";
import { KeysSection } from "./keys/KeysSection";
import { SignInsSection } from "./keys/SignInsSection";
import { ModelsSection } from "./models/ModelsSection";
import { NotificationsSection } from "./NotificationsSection";
import { RulesSection } from "./rules/RulesSection";
import { RunnerSection } from "./runner/RunnerSection";

/** A part of the settings page. */
export interface PartOfSettings {
  /** Stands behind `#` in the page's address. */
  id: string;
  name: "navRunner" | "navModels" | "navAgent" | "navRules" | "navExtensions" | "navAppearance" | "navNotifications" | "navKeys" | "navSignIns" | "navAccount";
  icon: LucideIcon;
  Content: ComponentType;
}

/** The parts of the settings page; the active runner is the first. */
export const PARTS = [
  { id: "runner", name: "navRunner", icon: Server, Content: RunnerSection },
  { id: "models", name: "navModels", icon: Bot, Content: ModelsSection },
  { id: "agent", name: "navAgent", icon: SlidersHorizontal, Content: AgentSection },
  { id: "rules", name: "navRules", icon: Scale, Content: RulesSection },
  { id: "extensions", name: "navExtensions", icon: Puzzle, Content: ExtensionsSection },
  { id: "appearance", name: "navAppearance", icon: Palette, Content: AppearanceSection },
  { id: "notifications", name: "navNotifications", icon: Bell, Content: NotificationsSection },
  { id: "keys", name: "navKeys", icon: KeyRound, Content: KeysSection },
  { id: "sign-ins", name: "navSignIns", icon: MonitorSmartphone, Content: SignInsSection },
  { id: "account", name: "navAccount", icon: CircleUser, Content: AccountSection },
] as const satisfies readonly PartOfSettings[];
