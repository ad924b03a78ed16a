import type { ExecutionResult } from 'graphql';
import { graphqlURL } from './server';

/** What to say when no answer came, and behind it what the browser says. */
export function unanswered(reason: unknown): string {
  const technical = reason instanceof Error ? reason.message : String(reason);
  return `The server does not answer at ${graphqlURL}. Is it running? (${technical})`;
}

/** A message in the shape of an answer: of an error GraphiQL would show the stack. */
export const asResult = (message: string) => ({ errors: [{ message }] }) as unknown as ExecutionResult;

export const noAnswer = (reason: unknown) => asResult(unanswered(reason));

/** Whether a proxy says that the server behind it is gone. */
export const isGone = (status: number) => status === 502 || status === 504;
