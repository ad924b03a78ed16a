import type { Fetcher, FetcherParams } from '@graphiql/toolkit';
import { Kind, parse, type ExecutionResult, type OperationDefinitionNode } from 'graphql';
import { answer, type Headers, type Request } from './answer';
import { keepMade } from './channel';
import { withCredential } from './credential';
import { follow, type Sink } from './follow';
import { graphqlURL } from './server';
import { beginsNow } from './start';
import { noAnswer } from './unanswered';

/** Sends queries and mutations by POST, subscriptions as one event stream each. */
export const fetcher: Fetcher = (params, options) => {
  const headers = withCredential((options?.headers ?? {}) as Headers);
  const operation = chosenOperation(params);
  // GraphiQL reads the names in the editor a moment late: run directly after a change
  // of tab, a request carries the name of an operation that it does not contain.
  const request = { ...params, operationName: operation?.name?.value };
  if (operation?.operation === 'subscription') {
    return { subscribe: (sink: Sink) => ({ unsubscribe: follow(request, headers, beginsNow(operation, headers), sink) }) };
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
    const result = await answer(response);
    keepMade(result.data);
    return result;
  } catch (reason) {
    return noAnswer(reason);
  }
}
