import { useMutation } from "@tanstack/react-query";
import { ProblemError } from "@/api/problem";
import { queries } from "@/api/query";
import type { NewValues, SettingName } from "@/api/schema";
import { changeSettings } from "@/api/settings";
import type { Layer } from "./facts";

/** The saving of one setting. */
export interface Save {
  save: (value: string | null) => void;
  saving: boolean;
  /** The value on its way to the server; null while it is taken back. */
  pending: string | null | undefined;
  error: unknown;
}

/**
 * Saves a setting in a layer. Once it is stored, or refused, the values are read anew: the page shows the stored one.
 *
 * A change for everyone names the generation that was read, so that no admin undoes another one's change unseen.
 */
export function useSave(name: SettingName, layer: Layer, generation: number): Save {
  const mutation = useMutation({
    mutationFn: (value: string | null) => {
      const values: NewValues = { [name]: value };
      return changeSettings({ layer, values, ...(layer === "tenant" ? { generation } : {}) });
    },
    // The role may have been taken away, or another change came first.
    onError: (error) => (error instanceof ProblemError && !error.isUnreachable ? queries.invalidateQueries({ queryKey: ["settings"] }) : undefined),
  });
  return { save: mutation.mutate, saving: mutation.isPending, pending: mutation.isPending ? mutation.variables : undefined, error: mutation.error };
}
