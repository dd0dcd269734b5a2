import type { AddModelAccount, ModelAccount } from "@/api/schema";

/** What a person has typed about an account. */
export interface AccountForm {
  /** A provider that the server knows, or {@link OTHER}. */
  provider: string;
  name: string;
  key: string;
  baseUrl: string;
  /** A wire format, or empty for that of the provider. */
  format: string;
  /** Names of models with commas or line ends between them; empty for those of the provider. */
  models: string;
}

/** Stands in the list of providers for a server that is none of them. No provider has this name. */
export const OTHER = "/";

/** The wire formats that the server speaks. */
export const FORMATS = ["openai-chat", "openai-responses", "anthropic-messages", "gemini"] as const;

/** The form for a new account, or for replacing one. The key is never filled in: the server does not tell it. */
export function formOf(account: ModelAccount | undefined, known: readonly string[]): AccountForm {
  if (!account) return { provider: known[0] ?? OTHER, name: "", key: "", baseUrl: "", format: "", models: "" };
  const isKnown = known.includes(account.provider);
  return {
    provider: isKnown ? account.provider : OTHER,
    name: account.name,
    key: "",
    baseUrl: account.base_url ?? "",
    format: account.format ?? "",
    models: isKnown && !account.base_url ? "" : account.models.join(", "),
  };
}

/** The names in a text with commas or line ends between them, each once. */
export function namesIn(text: string): string[] {
  const names = text.split(/[,\n]/).map((name) => name.trim());
  return [...new Set(names)].filter((name) => name !== "");
}

/** True if an account can have this name: it stands before a `/` in the names of its models. */
export function isAccountName(name: string): boolean {
  return /^[A-Za-z0-9._-]{1,64}$/.test(name) && name !== "operator" && name !== "auto";
}

/** True if the text is an address of a server. */
export function isServerAddress(text: string): boolean {
  try {
    return /^https?:$/.test(new URL(text).protocol);
  } catch {
    return false;
  }
}

/** The request for what was typed. `account` is the one that is replaced: its provider and its name stay. */
export function requestOf(form: AccountForm, forEveryone: boolean, account: ModelAccount | undefined): AddModelAccount {
  const name = account?.name ?? form.name.trim();
  const models = namesIn(form.models);
  const [key, baseUrl] = [form.key.trim(), form.baseUrl.trim()];
  return {
    provider: account?.provider ?? (form.provider === OTHER ? name : form.provider),
    of_tenant: forEveryone,
    ...(name ? { name } : {}),
    ...(key ? { key } : {}),
    ...(baseUrl ? { base_url: baseUrl } : {}),
    ...(form.format ? { format: form.format } : {}),
    ...(models.length > 0 ? { models } : {}),
  };
}
