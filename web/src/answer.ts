import type { FetcherParams } from '@graphiql/toolkit';
import type { ExecutionResult } from 'graphql';
import { noticeOf, setNotice } from './notice';
import { graphqlURL } from './server';
import { asResult, isGone, noAnswer } from './unanswered';

export type Headers = Record<string, string>;
export type Request = Omit<FetcherParams, 'operationName'> & { operationName?: string };

/** The GraphQL answer in a response of any status, or what to say when there is none in it. */
export async function answer(response: Response): Promise<ExecutionResult> {
  const text = await response.text();
  let result: ExecutionResult | undefined;
  try {
    result = JSON.parse(text);
  } catch {
    // told below
  }
  setNotice(noticeOf(response.status, result, response.headers.get('retry-after')));
  const said = `${response.status} ${response.statusText}`.trim();
  if (result === undefined && isGone(response.status)) return noAnswer(said);
  return result ?? asResult(`The server at ${graphqlURL} answered, but not with GraphQL (${said}: ${text.slice(0, 500)})`);
}
