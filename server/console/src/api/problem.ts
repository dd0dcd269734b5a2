import type { Problem } from "./schema";

/** A request that the server refused, or that did not reach it. */
export class ProblemError extends Error {
  /** A stable word, such as `not_found`; `unreachable` if no answer came. */
  readonly code: string;
  /** The HTTP status; 0 if no answer came. */
  readonly status: number;

  constructor(problem: Pick<Problem, "code" | "status" | "detail">) {
    super(problem.detail);
    this.name = "ProblemError";
    this.code = problem.code;
    this.status = problem.status;
  }

  /** True if no answer came: the same request may succeed once the server is back. */
  get isUnreachable(): boolean {
    return this.status === 0;
  }
}

/** The problem in an answer that is no success. Proxies answer with pages of their own, so the body may be anything. */
export function problemOf(body: unknown, response: Response): ProblemError {
  if (typeof body === "object" && body !== null && "code" in body && "detail" in body) {
    const { code, detail } = body as { code: unknown; detail: unknown };
    return new ProblemError({ code: String(code), status: response.status, detail: String(detail) });
  }
  const detail = `The server answered ${response.status} ${response.statusText}`.trim();
  return new ProblemError({ code: "unexpected", status: response.status, detail });
}
