import type { PermissionRule, TrustedFile } from "@/api/schema";

const ORDER = ["deny", "ask", "allow"];

/** Rules in the order in which they count: those that deny, those that ask, those that allow. */
export function inOrder(rules: readonly PermissionRule[]): PermissionRule[] {
  return rules.toSorted((a, b) => ORDER.indexOf(a.decision) - ORDER.indexOf(b.decision));
}

/** A project's file that the person trusts, with its rules. */
export interface FileOfRules {
  file: TrustedFile;
  rules: PermissionRule[];
}

/** The trusted files among the rules, each once, in the order in which the server names them. */
export function filesOf(rules: readonly PermissionRule[]): FileOfRules[] {
  const files = new Map<string, FileOfRules>();
  for (const rule of rules) {
    if (!rule.file) continue;
    const known = files.get(rule.file.id);
    if (known) known.rules.push(rule);
    else files.set(rule.file.id, { file: rule.file, rules: [rule] });
  }
  return [...files.values()];
}
