// Runs the scenarios with a public client: node scenarios.mjs URL CLIENT, where
// CLIENT is sse-distinct, sse-single or ws. Prints the name of each scenario that
// went well, and ends at the first that does not.
import assert from 'node:assert/strict';
import { createClient as createSSE } from 'graphql-sse';
import { createClient as createWS } from 'graphql-ws';
import { WebSocket } from 'ws';

const [url, kind] = process.argv.slice(2);

// The client of the single connection mode gives up the body of an answer other
// than 202 when it reports it.
let refused;
async function keepingRefusals(input, init) {
  const response = await fetch(input, init);
  if (init.method === 'POST' && response.status !== 202) refused = await response.json();
  return response;
}

const clients = {
  'sse-distinct': () => createSSE({ url, retryAttempts: 0 }),
  'sse-single': () => createSSE({ url, retryAttempts: 0, singleConnection: true, fetchFn: keepingRefusals }),
  ws: () => createWS({ url: url.replace(/^http/, 'ws'), retryAttempts: 0, webSocketImpl: WebSocket }),
};
const client = clients[kind]();

// run resolves to what an operation gave and how it ended.
function run(request) {
  return new Promise((resolve) => {
    const results = [];
    client.subscribe(request, {
      next: (result) => results.push(result),
      error: (failure) => resolve({ results, failure }),
      complete: () => resolve({ results }),
    });
  });
}

// refusal gives the errors of an operation that was refused, in whatever way the
// protocol tells them, and checks that way.
async function refusal(request) {
  const { results, failure } = await run(request);
  switch (kind) {
    case 'sse-distinct': // an event, and complete
      assert.equal(failure, undefined);
      assert.equal(results.length, 1);
      assert.equal(results[0].data, undefined);
      return results[0].errors;
    case 'sse-single': // the answer to the request
      assert.deepEqual(results, []);
      assert.ok(failure.response.status >= 400, String(failure));
      return refused.errors;
    default: // a message error
      assert.deepEqual(results, []);
      return failure;
  }
}

const control = (path) => fetch(new URL(path, url), { method: 'POST' }).then((r) => r.json());
const fault = (on) => control(`/control/fault?on=${on}`);
const commit = () => control('/control/commit');
const watchers = (n) => control(`/control/watchers?n=${n}`);

const positioned = (result) => {
  assert.equal(typeof result.extensions.position, 'string');
  assert.equal(typeof result.extensions.revision, 'number');
};

const subscription = (name) =>
  `subscription ${name} { change: statementChanged { __typename ... on StatementChange { op } } }`;

const change = { change: { __typename: 'StatementChange', op: 'add' } };

const scenarios = {
  async query() {
    const { results, failure } = await run({ query: '{ revision }' });
    assert.equal(failure, undefined);
    assert.equal(results.length, 1);
    assert.equal(typeof results[0].data.revision, 'number');
    positioned(results[0]);
  },

  async variables() {
    const { results } = await run({
      operationName: 'B',
      query: 'query A { revision } query B($iri: IRI!, $on: Boolean = false) { entity(iri: $iri) { iri value(predicate: "ex:p") @include(if: $on) } }',
      variables: { iri: 'https://example.org/s', on: true },
    });
    assert.deepEqual(results[0].data, { entity: { iri: 'https://example.org/s', value: 0 } });
  },

  async mutation() {
    const patch = { op: 'add', statement: { subject: { id: 'ex:m' }, predicate: { id: 'ex:p' }, object: { value: kind } } };
    const { results, failure } = await run({
      query: 'mutation($input: ApplyPatchesInput!) { applyPatches(input: $input) { success statementsAffected } }',
      variables: { input: { patches: [patch] } },
    });
    assert.equal(failure, undefined);
    assert.deepEqual(results[0].data, { applyPatches: { success: true, statementsAffected: 1 } });
    positioned(results[0]);
  },

  async 'partial errors'() {
    const { results, failure } = await run({ query: '{ revision entity(iri: "nonsense") { iri } }' });
    assert.equal(failure, undefined);
    assert.equal(results.length, 1);
    assert.equal(results[0].data.entity, null);
    assert.equal(typeof results[0].data.revision, 'number');
    assert.deepEqual(results[0].errors[0].path, ['entity']);
  },

  async 'resolver panic'() {
    const query = '{ revision entity(iri: "ex:secret") { iri } }';
    await fault(true);
    const { results, failure } = await run({ query });
    await fault(false);
    assert.equal(failure, undefined);
    assert.equal(results.length, 1);
    assert.equal(results[0].errors.length, 1);
    assert.deepEqual(results[0].errors[0].path, ['entity']);
    assert.equal(results[0].data.entity, null);
    assert.equal(results[0].errors[0].extensions.code, 'INTERNAL');
  },

  async 'engine panic'() {
    const errors = await refusal({ operationName: 'Panic', query: 'query Panic { revision }' });
    assert.equal(errors[0].message, 'internal error');
    assert.equal(errors[0].extensions.code, 'INTERNAL');
  },

  async 'subscription complete'() {
    const ended = run({ operationName: 'EndLater', query: subscription('EndLater') });
    await watchers(1);
    await commit();
    const { results, failure } = await ended;
    assert.equal(failure, undefined);
    assert.equal(results.length, 1);
    assert.deepEqual(results[0].data, change);
    positioned(results[0]);
    await watchers(0);
  },

  async 'subscription early stop'() {
    const results = client.iterate({ query: subscription('Stop') });
    const first = results.next();
    await watchers(1);
    await commit();
    assert.deepEqual((await first).value.data, change);
    await results.return();
    await watchers(0);
    const { results: after } = await run({ query: '{ revision }' });
    assert.equal(after.length, 1);
  },

  async 'subscription refused'() {
    const errors = await refusal({ query: 'subscription { statementChanged(resume: "nowhere") { __typename } }' });
    assert.equal(errors[0].extensions.code, 'POSITION_GONE');
    await watchers(0);
  },

  async 'error mid-stream'() {
    const ended = run({ operationName: 'FailLater', query: subscription('FailLater') });
    await watchers(1);
    await commit();
    const { results, failure } = await ended;
    assert.deepEqual(results[0].data, change);
    const errors = kind === 'ws' ? failure : results[1].errors;
    assert.equal(errors[0].extensions.code, 'INTERNAL');
    if (kind !== 'ws') assert.equal(failure, undefined);
    assert.equal(results.length, kind === 'ws' ? 1 : 2);
    await watchers(0);
  },

  async 'validation error'() {
    const errors = await refusal({ query: '{ revision noSuchField }' });
    assert.equal(errors[0].extensions.code, 'GRAPHQL_VALIDATION_FAILED');
    assert.match(errors[0].message, /noSuchField/);
  },

  async 'syntax error'() {
    const errors = await refusal({ query: '{' });
    assert.equal(errors[0].extensions.code, 'GRAPHQL_PARSE_FAILED');
  },

  async 'five at once'() {
    const all = [1, 2, 3, 4, 5].map((n) => run({ operationName: 'EndLater', query: subscription('EndLater').replace('change:', `c${n}:`) }));
    const queries = [1, 2, 3, 4, 5].map((n) => run({ query: `{ q${n}: revision }` }));
    for (const [i, answer] of (await Promise.all(queries)).entries()) {
      assert.deepEqual(Object.keys(answer.results[0].data), [`q${i + 1}`]);
    }
    await watchers(5);
    await commit();
    for (const [i, { results, failure }] of (await Promise.all(all)).entries()) {
      assert.equal(failure, undefined);
      assert.deepEqual(results.map((r) => r.data), [{ [`c${i + 1}`]: change.change }]);
    }
    await watchers(0);
  },
};

for (const [name, scenario] of Object.entries(scenarios)) {
  await scenario();
  console.log(name);
}
await client.dispose();
