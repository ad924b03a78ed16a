import { deepEqual, equal } from 'node:assert/strict';
import { test } from 'node:test';
import { runnerImport } from 'vite';

const options = { root: import.meta.dirname, configFile: false, logLevel: 'error' };
const { EventLog, maxShown } = (await runnerImport('./eventlog.ts', options)).module;

const change = (n) => ({ data: { statementChanged: { __typename: 'StatementChange', n } } });
const mark = (n) => ({ data: { statementChanged: { __typename: 'Progress', n } } });

test('the newest event comes first, all of a burst are kept', () => {
  const log = new EventLog();
  log.add(change(1));
  log.add(change(2));
  deepEqual(log.add(change(3)), { received: 3, newestFirst: [change(3), change(2), change(1)] });
});

test('the log holds maxShown events; one more drops the oldest and is counted', () => {
  const log = new EventLog();
  let shown;
  for (let n = 1; n <= maxShown; n++) shown = log.add(change(n));
  deepEqual(shown.newestFirst.at(-1), change(1));
  shown = log.add(change(maxShown + 1));
  equal(shown.received, maxShown + 1);
  equal(shown.newestFirst.length, maxShown);
  deepEqual(shown.newestFirst.at(-1), change(2));
});

test('of the marks that nothing happened only the newest stays, and none counts', () => {
  const log = new EventLog();
  log.add(mark(1));
  log.add(change(2));
  deepEqual(log.add(mark(3)), { received: 1, newestFirst: [mark(3), change(2)] });
});

test('an event with errors and without data is shown as it came', () => {
  const failed = { errors: [{ message: 'no' }] };
  deepEqual(new EventLog().add(failed), { received: 1, newestFirst: [failed] });
  const empty = { data: null, errors: [{ message: 'no' }] };
  deepEqual(new EventLog().add(empty), { received: 1, newestFirst: [empty] });
});
