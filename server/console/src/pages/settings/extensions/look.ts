import { Bot, BookOpen, Plug, Puzzle, Webhook, type LucideIcon } from "lucide-react";
import type { ExtensionKind } from "@/api/schema";
import type { FoundKind } from "./about";

/** The sign and the word of each kind. */
export const KINDS = {
  skill: { icon: BookOpen, word: "kindSkill" },
  agent: { icon: Bot, word: "kindAgent" },
  hook: { icon: Webhook, word: "kindHook" },
  hooks: { icon: Webhook, word: "kindHooks" },
  mcp: { icon: Plug, word: "kindServer" },
  plugin: { icon: Puzzle, word: "kindPlugin" },
} as const satisfies Record<FoundKind | ExtensionKind, { icon: LucideIcon; word: string }>;

/** The beginning of a digest, as lists show it. */
export const short = (digest: string) => digest.slice(0, 12);
