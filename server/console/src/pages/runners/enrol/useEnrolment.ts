import { useState } from "react";
import { createJoinToken } from "@/api/join-tokens";
import { queries } from "@/api/query";
import { runnersQuery } from "@/api/runners";
import type { JoinToken } from "@/api/schema";
import { useIdempotencyKey } from "@/ui/useIdempotencyKey";
import { firstTerms, requestOf, type Terms } from "./terms";

/** A token that was made on this page. It is shown until it is put away, and never again. */
export interface MadeToken {
  token: JoinToken;
  terms: Terms;
  /** The runners that were there before: those that come are others. */
  before: ReadonlySet<string>;
}

/** The way from the terms of a join token to the token. */
export interface Enrolment {
  terms: Terms;
  change: (change: Partial<Terms>) => void;
  made: MadeToken | undefined;
  busy: boolean;
  error: unknown;
  /** Makes a token on these terms. */
  make: () => void;
  /** Puts the token away. It still works until it expires or is ended. */
  putAway: () => void;
}

/** See {@link Enrolment}. */
export function useEnrolment(): Enrolment {
  const [terms, setTerms] = useState(() => firstTerms(location.origin));
  const [made, setMade] = useState<MadeToken>();
  // A token that is put away is followed by another one, also on the same terms.
  const key = useIdempotencyKey([terms, made?.token.id]);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const make = async () => {
    setBusy(true);
    setError(undefined);
    try {
      // The list may be older than a machine that came just now.
      const { runners } = await queries.fetchQuery({ ...runnersQuery, staleTime: 0 });
      const token = await createJoinToken(requestOf(terms), key);
      setMade({ token, terms, before: new Set(runners.map((runner) => runner.id)) });
    } catch (failure) {
      setError(failure);
    } finally {
      setBusy(false);
    }
  };
  return { terms, change: (change) => setTerms({ ...terms, ...change }), made, busy, error, make: () => void make(), putAway: () => setMade(undefined) };
}
