import type { Fetcher, FetcherParams } from '@graphiql/toolkit';
import { Kind, parse, type ExecutionResult, type OperationDefinitionNode } from 'graphql';
import { createClient } from 'graphql-sse';
import { withCredential } from './credential';
import { EventLog } from './eventlog';
import { noticeOf, setNotice } from './notice';
import { graphqlURL } from './server';
import { asResult, isGone, noAnswer } from './unanswered';

type Headers = Record<string, string>;
type Request = Omit<FetcherParams, 'operationName'> & { operationName?: string };

/** Sends queries and mutations by POST, subscriptions as one event stream each. */
export const fetcher: Fetcher = (params, options) => {
  const headers = withCredential((options?.headers ?? {}) as Headers);
  const operation = chosenOperation(params);
  // GraphiQL reads the names in the editor a moment late: run directly after a change
  // of tab, a request carries the name of an operation that it does not contain.
  const request = { ...params, operationName: operation?.name?.value };
  if (operation?.operation === 'subscription') {
    return { subscribe: (sink: Sink) => ({ unsubscribe: follow(request, headers, sink) }) };
  }
  return post(request, headers);
};

/** The operation to be run; undefined when the server should say what is wrong. */
function chosenOperation({ query, operationName }: FetcherParams): OperationDefinitionNode | undefined {
  try {
    const operations = parse(query).definitions.filter((d) => d.kind === Kind.OPERATION_DEFINITION);
    if (operations.length === 1) return operations[0];
    return operations.find((o) => o.name?.value === operationName);
  } catch {
    return undefined;
  }
}

async function post(request: Request, headers: Headers): Promise<ExecutionResult> {
  try {
    const response = await fetch(graphqlURL, {
      method: 'POST',
      headers: {
        accept: 'application/graphql-response+json, application/json;q=0.9',
        'content-type': 'application/json',
        ...headers,
      },
      body: JSON.stringify(request),
    });
    return await answer(response);
  } catch (reason) {
    return noAnswer(reason);
  }
}

/** The GraphQL answer in a response of any status, or what to say when there is none in it. */
async function answer(response: Response): Promise<ExecutionResult> {
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

interface Sink {
  next(value: ExecutionResult): void;
  error(reason: unknown): void;
  complete(): void;
}

/**
 * Follows one subscription (graphql-sse, distinct connections mode) and hands the
 * event log on after each event. Returns the function that ends it.
 */
function follow(request: Request, headers: Headers, sink: Sink): () => void {
  const log = new EventLog();
  let refusal: ExecutionResult | undefined;
  const client = createClient({
    url: graphqlURL,
    headers,
    // A silent retry would start behind the events of the gap. A reader who wants
    // those resumes from the last position with the operation's `resume` argument.
    retryAttempts: 0,
    // The client takes any body for an event stream, and drops the body of an error.
    fetchFn: async (input: RequestInfo, init?: RequestInit) => {
      const response = await fetch(input, init);
      if (response.headers.get('content-type')?.startsWith('text/event-stream')) return ended(response);
      refusal = await answer(response);
      throw new Error('the server refused the subscription');
    },
  });
  return client.subscribe(
    request,
    {
      next: (event) => {
        setNotice(noticeOf(200, event as ExecutionResult));
        sink.next(log.add(event as ExecutionResult));
      },
      complete: () => sink.complete(),
      error: (reason) => {
        sink.next(refusal ?? noAnswer(reason));
        sink.complete();
      },
    },
  );
}

/**
 * The stream with an end that the client sees. A server that cuts one off (a key was
 * revoked, it shuts down) says why in the last event and sends no `complete`; when that
 * event and the end come together, the client waits for ever.
 */
function ended(response: Response): Response {
  const end = new TransformStream<Uint8Array, Uint8Array>({
    flush: (stream) => stream.enqueue(new TextEncoder().encode('event: complete\ndata: \n\n')),
  });
  return new Response(response.body!.pipeThrough(end), response);
}
