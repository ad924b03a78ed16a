import { equal } from 'node:assert/strict';
import { test } from 'node:test';
import { parse } from 'graphql';
import { runnerImport } from 'vite';

const options = { root: import.meta.dirname, configFile: false, logLevel: 'error' };
const { beginsNow } = (await runnerImport('./start.ts', options)).module;

const cases = [
  ['statementChanged { __typename }', true],
  ['statementChanged(where: {op: add}) { __typename }', true],
  ['statementChanged(resume: null) { __typename }', true],
  ['statementChanged(resume: "latest") { __typename }', true],
  ['statementChanged(resume: "snapshot") { __typename }', false],
  ['statementChanged(resume: $from) { __typename }', false],
  ['messagePublished(where: {channelId: "c"}) { __typename }', true],
  ['messagePublished(where: {channelId: "c"}, sinceSequence: 0) { __typename }', false],
  ['taskChanged(id: "t") { __typename }', false],
  ['taskChanged(id: "t", resume: "p") { __typename }', false],
  ['signalSent(channelId: "c") { __typename }', false],
];

for (const [field, want] of cases) {
  test(`${field} begins ${want ? 'now' : 'elsewhere'}`, () => {
    const [operation] = parse(`subscription { ${field} }`).definitions;
    equal(beginsNow(operation, {}), want);
    equal(beginsNow(operation, { 'Last-Event-ID': 'p' }), false);
  });
}
