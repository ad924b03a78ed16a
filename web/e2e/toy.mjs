// A tiny GraphQL server for the browser test: koine's schema, answers made up from
// the types, and a change event for each patch. It prints its port, and ends with
// its standard input.
import { createServer } from 'node:http';
import { readFileSync } from 'node:fs';
import * as G from 'graphql';
import { createHandler } from 'graphql-sse/lib/use/http';

const sdl = readFileSync(new URL('../../schema.graphqls', import.meta.url), 'utf8');
const schema = G.buildSchema(sdl);

const leaves = { Int: 1, Float: 0.5, Long: 1, Revision: 1, Boolean: false, DateTime: '2026-01-01T00:00:00Z' };

/** Some value of a type; a list holds one. */
function made(type) {
  if (G.isNonNullType(type)) return made(type.ofType);
  if (G.isListType(type)) return [made(type.ofType)];
  if (G.isEnumType(type)) return type.getValues()[0].value;
  if (G.isAbstractType(type)) return { __typename: schema.getPossibleTypes(type)[0].name };
  if (G.isObjectType(type)) return { __typename: type.name };
  return leaves[type.name] ?? `some ${type.name}`;
}

const fieldResolver = (source, _args, _context, info) => source?.[info.fieldName] ?? made(info.returnType);

const waiting = new Set();

async function* changes() {
  for (;;) yield { statementChanged: await new Promise((resolve) => waiting.add(resolve)) };
}

/** The event of a patch. */
function change({ op, statement }, justification) {
  const object = { __typename: 'Literal', value: statement.object.value };
  const subject = { iri: statement.subject.id };
  const { certainty } = statement;
  return {
    __typename: 'StatementChange',
    op,
    statement: { subject, predicate: statement.predicate.id, object, certainty },
    commit: { justification },
  };
}

const { applyPatches } = schema.getMutationType().getFields();
applyPatches.resolve = (_source, { input }) => {
  for (const patch of input.patches) {
    for (const resolve of waiting) resolve(change(patch, input.justification));
    waiting.clear();
  }
  return {};
};

const stream = createHandler({
  schema,
  execute: (args) => G.execute({ ...args, fieldResolver }),
  subscribe: (args) => G.subscribe({ ...args, fieldResolver, subscribeFieldResolver: changes }),
  onSubscribe: (_request, { query }) => {
    const errors = G.validate(schema, G.parse(query));
    if (errors.length === 0) return undefined;
    const headers = { 'content-type': 'application/json' };
    return [JSON.stringify({ errors }), { status: 400, statusText: 'Bad Request', headers }];
  },
});

async function answer(request, response) {
  if (request.headers.accept === 'text/event-stream') return stream(request, response);
  const parts = [];
  for await (const part of request) parts.push(part);
  const { query, variables, operationName } = JSON.parse(Buffer.concat(parts));
  const result = await G.graphql({ schema, source: query, variableValues: variables, operationName, fieldResolver });
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
