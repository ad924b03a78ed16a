// A tiny GraphQL server for the browser test: enough schema for the example tabs,
// with answers that are made up from it, and a change for each mutation.
// It prints its port, and ends with its standard input.
import { createServer } from 'node:http';
import { readFileSync } from 'node:fs';
import { buildSchema, graphql } from 'graphql';
import { createHandler } from 'graphql-sse/lib/use/http';

const schema = buildSchema(readFileSync(new URL('toy.graphql', import.meta.url), 'utf8'));

const waiting = new Set();

async function* changes() {
  for (;;) {
    const change = await new Promise((resolve) => waiting.add(resolve));
    yield { statementChanged: change };
  }
}

const entity = (iri) => ({ __typename: 'Entity', iri, label: 'a toy', degree: 1, types: [], out: [], in: [] });
const page = (nodes) => ({
  totalCount: nodes.length,
  edges: nodes.map((node, i) => ({ cursor: `c${i}`, node })),
  pageInfo: { hasNextPage: false, endCursor: null },
});

const root = {
  entity: ({ iri }) => entity(iri),
  entities: () => page([entity('demo:a'), entity('demo:b')]),
  statements: () => page([]),
  vocabulary: { prefixes: [], classes: [], predicates: [] },
  stats: { statements: 1, entities: 1 },
  revision: 1,
  applyPatches: ({ input }) => {
    for (const { op, statement } of input.patches) {
      const object = { __typename: 'Literal', ...statement.object, datatype: 'xsd:string' };
      const change = { __typename: 'StatementChange', op, revision: 2 };
      change.statement = { ...statement, subject: entity(statement.subject), object, assertedBy: [] };
      for (const resolve of waiting) resolve(change);
      waiting.clear();
    }
    return { revision: 2, statementsAffected: 1, affectedIds: [], verificationStatus: 'Verified' };
  },
  statementChanged: () => changes(),
};

schema.getSubscriptionType().getFields().statementChanged.subscribe = () => changes();
const stream = createHandler({ schema, rootValue: root });

async function answer(request, response) {
  if (request.headers.accept === 'text/event-stream') return stream(request, response);
  const parts = [];
  for await (const part of request) parts.push(part);
  const { query, variables, operationName } = JSON.parse(Buffer.concat(parts));
  const result = await graphql({ schema, source: query, rootValue: root, variableValues: variables, operationName });
  response.setHeader('content-type', 'application/graphql-response+json');
  response.end(JSON.stringify(result));
}

const server = createServer((request, response) => {
  answer(request, response).catch((error) => {
    response.statusCode = 500;
    response.end(String(error.stack));
  });
});
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
process.stdin.on('end', () => process.exit(0)).resume();
