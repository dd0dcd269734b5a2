import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { answerApproval, approvalQuery } from "@/api/approvals";
import { ProblemError } from "@/api/problem";
import type { Answer, Approval } from "@/api/schema";

/** The questions whose answers are on their way: whatever is pressed, and on how many cards, one goes. */
const onTheirWay = new Set<string>();

/** The answering of one question. */
export interface Answering {
  /** Sends an answer; does nothing while one is on its way. */
  readonly send: (answer: Answer) => void;
  /** The answer that is on its way; undefined once the server has it or refused it. */
  readonly sending: Answer | undefined;
  /** True while an answer cannot be sent yet: the question's digest is not known. */
  readonly loading: boolean;
  readonly error: unknown;
  /** The question as the server last told it; undefined if it did not yet. */
  readonly told: Approval | undefined;
  /** Asks for the question again. */
  readonly reload: () => void;
}

/** Answers a question. `given` is the digest, where it is known already. */
export function useAnswer(id: string, given: string | undefined, pending: boolean): Answering {
  const queries = useQueryClient();
  const query = approvalQuery(id);
  const asked = useQuery({ ...query, enabled: pending && given === undefined });
  const told = asked.data;
  const digest = given ?? told?.digest;
  const mutation = useMutation({
    mutationFn: (words: Answer) => answerApproval(id, digest ?? "", words),
    onSuccess: (approval) => queries.setQueryData(query.queryKey, approval),
    onError: async (error) => {
      // Another answer came first: the question itself tells whose.
      if (error instanceof ProblemError && error.status === 409) await queries.fetchQuery({ ...query, staleTime: 0 });
    },
    onSettled: () => {
      onTheirWay.delete(id);
      return queries.invalidateQueries({ queryKey: ["approvals", "waiting"] });
    },
  });
  const send = (words: Answer) => {
    if (digest === undefined || onTheirWay.has(id) || told?.outcome) return;
    onTheirWay.add(id);
    mutation.mutate(words);
  };
  return {
    send,
    sending: mutation.isPending ? mutation.variables : undefined,
    loading: digest === undefined && !asked.isError,
    error: mutation.error ?? (digest === undefined ? asked.error : null) ?? undefined,
    told,
    reload: () => void asked.refetch(),
  };
}
