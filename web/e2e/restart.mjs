// Runs koine itself, and takes it away and brings it back while the playground is open:
// the page says in plain words that nobody answers, and its subscriptions go on.
//
//   node e2e/restart.mjs --koine PROGRAM --data DIR [--screenshots DIR]
import { editorText, executeButton, faults, isStream, open, options, page, readTabs, run, screenshot, setOnline, shown, take, write } from './browser.mjs';
import { Server } from './server.mjs';

const notice = page.locator('.koine-notice');
const server = new Server(options.koine, options.data);

await take(async () => {
  try {
    options.url = `${await server.start()}/`;
    await page.goto(options.url, { waitUntil: 'load' });
    await executeButton('Execute').waitFor();
    const tabs = await readTabs();
    await plainWords(tabs);
    const assert = tabs.find((t) => t.title === 'Assert');
    const follow = tabs.find((t) => t.title === 'Follow');
    for (const signal of ['SIGINT', 'SIGKILL']) await goesOn(follow, assert, signal);
    await quiet(assert, 'SIGKILL');
    await stopped(follow);
    await givesUp(follow);
  } finally {
    await server.end('SIGKILL');
  }
});

/** While the server is gone the browser reports all sorts of faults. */
function forgetFaults() {
  faults.checkAllBut(/./);
}

/** A query and a subscription that nobody answers say so, without a stack. */
async function plainWords(tabs) {
  const query = tabs.find((t) => t.operation === 'query');
  await run(query);
  await page.waitForLoadState('networkidle'); // what the editors load late is there
  faults.check();
  await server.end('SIGINT');
  for (const tab of [query, tabs.find((t) => t.operation === 'subscription')]) {
    await open(tab);
    await executeButton('Execute').click();
    await shown(`The server does not answer at ${options.url}graphql. Is it running?`);
    await executeButton('Execute').waitFor();
    const answer = await page.evaluate(() =>
      globalThis.__MONACO.editor.getEditors().find((e) => e.getContainerDomNode().closest('.graphiql-response')).getValue());
    if (/stack|\.js|TypeError/.test(answer)) throw new Error(`raw internals: ${answer}`);
    await screenshot(`gone-${tab.operation}`);
  }
  await server.start();
  await run(query);
  forgetFaults();
  console.log('a server that is gone: said in plain words');
}

/** Makes a change, not by way of the page, and returns the text that is in it. */
async function change(assert) {
  const comment = `Seen at ${performance.now()}`;
  const response = await fetch(`${options.url}graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-agent-id': 'agent://walker' },
    body: JSON.stringify({ query: assert.query, variables: { comment } }),
  });
  const { errors } = await response.json();
  if (errors) throw new Error(JSON.stringify(errors));
  return comment;
}

/** Begins the subscription in the editor. */
async function begin() {
  const [stream] = await Promise.all([page.waitForResponse((r) => isStream(r.request())), executeButton('Execute').click()]);
  if (stream.status() !== 200) throw new Error(`the subscription was answered with ${stream.status()}`);
}

async function end() {
  await executeButton('Stop').click();
  await executeButton('Execute').waitFor();
}

/** Takes the server away until the page says that it tries to come back. */
async function away(signal) {
  await server.end(signal);
  await notice.getByText('Reconnecting …').waitFor();
}

/** Brings the server back, and makes changes before the page can come back. */
async function back(assert) {
  await setOnline(false);
  await server.start();
  const missed = [await change(assert), await change(assert)];
  await setOnline(true);
  return missed;
}

/** Each of the texts must be shown, once. */
async function shownOnce(texts) {
  for (const text of texts) await shown(text);
  const all = await editorText('.graphiql-response');
  for (const text of texts) {
    const times = all.split(text).length - 1;
    if (times !== 1) throw new Error(`${text}: told ${times} times`);
  }
}

/** A subscription goes on where it was, and tells what was changed meanwhile, and later. */
async function goesOn(follow, assert, signal) {
  await open(follow);
  await begin();
  await shown('"position"');
  const before = await change(assert);
  await shown(before);
  const stop = await executeButton('Stop').boundingBox();
  await away(signal);
  const moved = await executeButton('Stop').boundingBox();
  if (moved.x !== stop.x || moved.y !== stop.y) throw new Error(`Stop moved from ${stop.x}, ${stop.y} to ${moved.x}, ${moved.y} under the pointer`);
  await screenshot(`reconnecting-${signal}`);
  const missed = await back(assert);
  await shown(missed[1]);
  await notice.waitFor({ state: 'detached' });
  await shownOnce([before, ...missed, await change(assert)]);
  await end();
  forgetFaults();
  console.log(`subscription after ${signal}: goes on, without gap or duplicate`);
}

/** So does one that had nothing to tell before. */
async function quiet(assert, signal) {
  await write('subscription Quiet { statementChanged { ... on StatementChange { statement { object { ... on Literal { value } } } } } }');
  await begin();
  await away(signal);
  await shownOnce(await back(assert));
  await end();
  forgetFaults();
  console.log(`quiet subscription after ${signal}: goes on`);
}

/** Whoever stops it meanwhile hears no more of it. */
async function stopped(follow) {
  await open(follow);
  await begin();
  await shown('"position"');
  await away('SIGINT');
  await end();
  await notice.waitFor({ state: 'detached' });
  await server.start();
  forgetFaults();
  console.log('subscription that is stopped while the server is away: stays so');
}

/** A server that does not know the position is no reason to try for ever. */
async function givesUp(follow) {
  await open(follow);
  await begin();
  await shown('"position"');
  await away('SIGINT');
  server.data += '-new';
  await server.start();
  await notice.getByText('The subscription cannot go on: the position is not of this log. Run it again').waitFor();
  await executeButton('Execute').waitFor();
  await screenshot('gives-up');
  await begin();
  await shown('"position"');
  await notice.waitFor({ state: 'detached' });
  await end();
  forgetFaults();
  console.log('subscription that the server refuses: says so, and begins anew');
}
