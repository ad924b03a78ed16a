// Opens the playground of a server that knows its callers by keys, with the demo graph
// and one update a second for each caller: the page asks for a key, works with it, says
// what is refused and why, and keeps the key nowhere but in the browser tab.
//
//   node e2e/keys.mjs --url http://127.0.0.1:8080/ --admin ak_live_… [--screenshots DIR]
import { executeButton, faults, follow, isStream, operationName, options, page, readTabs, run, screenshot, shown, take, write } from './browser.mjs';

const field = page.getByLabel('Your API key or token');
const useIt = page.getByRole('button', { name: 'Use it' });
const notice = page.locator('.koine-notice');
const sent = watchHeaders();

await take(async () => {
  const first = await createKey('agent://walker');
  await asksFirst();
  await refusesWrong();
  await enter(first.secret);
  // In open mode the tabs about channels are run; there they are not the first to write.
  const tabs = (await readTabs()).filter((t) => !/channel|message/i.test(t.query));
  const mutation = tabs.find((t) => t.operation === 'mutation');
  for (const tab of tabs.filter((t) => t.operation === 'query')) await run(tab);
  const headers = { authorization: `Bearer ${first.secret}` };
  for (const tab of tabs.filter((t) => t.operation === 'subscription')) await follow(tab, mutation, headers);
  await run(mutation);
  keptHere(first.secret, await storages());
  faults.check();
  await sentAs(first.secret);
  await survivesReload(first);
  await actsForNobody();
  await tooMuch(first, mutation);
  await revoked(first, tabs.find((t) => t.operation === 'subscription'));
  const second = await createKey('agent://walker');
  await enter(second.secret);
  await forgotten(second.secret);
});

/** Asks as the administrator, outside of the page. */
async function administrate(query, variables) {
  const response = await page.request.post(new URL('graphql', options.url).href, {
    headers: { authorization: `Bearer ${options.admin}` },
    data: { query, variables },
  });
  const { data, errors } = await response.json();
  if (errors) throw new Error(JSON.stringify(errors));
  return data;
}

async function createKey(agent) {
  const query = 'mutation ($agent: ID!) { createApiKey(input: {agentId: $agent}) { secret key { id } } }';
  const { createApiKey } = await administrate(query, { agent });
  return { secret: createApiKey.secret, id: createApiKey.key.id };
}

/** Remembers the headers with which the page asked for anything at /graphql. */
function watchHeaders() {
  const all = [];
  page.on('request', (request) => {
    if (new URL(request.url()).pathname.endsWith('/graphql')) all.push(request);
  });
  return all;
}

/** Without a key there is no editor, and nothing is asked that would be refused. */
async function asksFirst() {
  await page.goto(options.url, { waitUntil: 'load' });
  await field.waitFor();
  if ((await page.locator('.graphiql-container').count()) > 0) throw new Error('there is an editor without a key');
  if (sent.length > 0) throw new Error(`asked without a key: ${sent[0].url()}`);
  if ((await field.getAttribute('type')) !== 'password') throw new Error('the key can be read over the shoulder');
  await screenshot('keys-form');
  faults.check();
  console.log('the page asks for a key');
}

async function refusesWrong() {
  await field.fill('ak_live_wrong');
  await useIt.click();
  await page.getByRole('alert').getByText('the credential is not valid').waitFor();
  await screenshot('keys-wrong');
  await field.fill('no key at all');
  await useIt.click();
  await page.getByRole('alert').getByText('looks like this').waitFor();
  if ((await storages()).session.length > 0) throw new Error('a wrong key is kept');
  faults.checkAllBut(/\b401\b/);
  console.log('a wrong key: says so');
}

async function enter(secret) {
  const introspected = page.waitForResponse((r) => operationName(r.request()) === 'IntrospectionQuery');
  introspected.catch(() => {}); // told by what is awaited before
  await field.fill(` ${secret} `);
  await useIt.click();
  await editorIsThere(secret);
  const { data } = await (await introspected).json();
  if (!data?.__schema) throw new Error('the schema was not answered');
  console.log('a good key: the editor is there');
}

/** The editor is there and so is who is calling, but not the secret. */
async function editorIsThere(secret) {
  await page.locator('.graphiql-query-editor .view-line').first().waitFor();
  await executeButton('Execute').waitFor();
  await page.locator('.koine-identity').getByText('agent://walker').waitFor();
  const masked = secret.slice(0, secret.lastIndexOf('_') + 1) + '••••';
  await page.locator('.koine-identity').getByText(masked).waitFor();
  await screenshot('keys-editor');
  if ((await page.content()).includes(secret)) throw new Error('the page shows the key');
  if (page.url().includes('ak_')) throw new Error(`the key is in the address: ${page.url()}`);
}

/** What the browser keeps, as texts. */
function storages() {
  return page.evaluate(() => ({
    session: Object.entries({ ...sessionStorage }).map((pair) => pair.join('=')),
    local: Object.entries({ ...localStorage }).map((pair) => pair.join('=')),
    cookies: document.cookie,
  }));
}

function keptHere(secret, { session, local, cookies }) {
  if (!session.some((entry) => entry.includes(secret))) throw new Error('the key is not in sessionStorage');
  if (local.some((entry) => entry.includes(secret))) throw new Error('the key is in localStorage');
  if (cookies) throw new Error(`there is a cookie: ${cookies}`);
}

/** Everything was sent with the key, subscriptions too, and as nobody else. */
async function sentAs(secret) {
  const good = sent.filter((r) => r.headers().authorization === `Bearer ${secret}`);
  if (!good.some(isStream)) throw new Error('no subscription was sent with the key');
  for (const request of sent) {
    const headers = await request.allHeaders();
    if (headers['x-agent-id']) throw new Error(`sent as ${headers['x-agent-id']}: ${operationName(request)}`);
    if (request.url().includes('ak_')) throw new Error(`the key is in an address: ${request.url()}`);
    if (!headers.authorization) throw new Error(`sent without the key: ${operationName(request)}`);
  }
  console.log(`${good.length} requests with the key, none as another agent`);
}

async function survivesReload({ secret }) {
  await page.reload({ waitUntil: 'load' });
  await editorIsThere(secret);
  faults.checkAllBut(/net::ERR_ABORTED/); // what the old page was still loading
  console.log('reloaded: still there');
}

/** Whoever names another agent in the headers tab is told that this is not allowed, and may think better of it. */
async function actsForNobody() {
  await write('query Other { me { id } }');
  await page.getByRole('button', { name: 'Headers', exact: true }).click();
  const headers = page.locator('.graphiql-editor-tool .graphiql-editor:not(.hidden) .monaco-editor').first();
  const say = async (text) => {
    await headers.click();
    await page.keyboard.press('ControlOrMeta+A');
    await page.keyboard.press('Delete');
    await page.keyboard.insertText(text);
    await page.waitForFunction((want) => globalThis.__MONACO.editor.getEditors().some((e) => e.getValue() === want), text);
    await executeButton('Execute').click();
  };
  await say('{"X-Agent-ID": "agent://somebody"}');
  await notice.getByText('you may not act for the agent in X-Agent-ID').waitFor();
  await shown('SOURCE_FORBIDDEN');
  await screenshot('keys-forbidden');
  await say('{}');
  await notice.waitFor({ state: 'detached' });
  await shown('"agent://walker"');
  faults.checkAllBut(/\b403\b/);
  // GraphiQL would keep what stood in the headers with its history.
  const { local } = await storages();
  if (!local.some((entry) => entry.includes('query Other'))) throw new Error('there is no history');
  if (local.some((entry) => entry.includes('agent://somebody'))) throw new Error('headers are in localStorage');
  console.log('another agent: refused, and said why');
}

/** The limit of updates: said, with a time to wait. */
async function tooMuch({ secret }, mutation) {
  await write(mutation.query.replace(/mutation \w+/, 'mutation TooMuch'));
  // Another program with the same key takes what there is for as long as it takes: on a
  // slow machine there may be one to spare again by the time that the button is pressed.
  let flooding = true;
  const flood = (async () => {
    while (flooding) {
      await page.request.post(new URL('graphql', options.url).href, { headers: { authorization: `Bearer ${secret}` }, data: { query: mutation.query } });
    }
  })();
  flood.catch(() => {}); // of a walk that ended before
  for (let said = false; !said;) {
    const answered = page.waitForResponse((r) => operationName(r.request()) === 'TooMuch');
    await executeButton('Execute').click();
    said = (await answered).status() === 429;
  }
  flooding = false;
  await flood;
  await notice.getByText(/Too much at once: .*Try again in \d+ s/).waitFor();
  await screenshot('keys-limited');
  faults.checkAllBut(/\b429\b/);
  console.log('too many updates: said, with a time to wait');
}

/** A key that is revoked ends the stream that it opened; the page says so and asks for another. */
async function revoked({ id, secret }, tab) {
  await write(tab.query.replace(/subscription \w+/, 'subscription Revoked'));
  await executeButton('Execute').click();
  await shown('"position"');
  await administrate('mutation ($id: ID!) { revokeApiKey(input: {keyId: $id}) { key { id } } }', { id });
  await notice.getByText('the key was revoked').waitFor();
  await executeButton('Execute').waitFor();
  await screenshot('keys-revoked');
  await notice.getByRole('button', { name: 'Enter a key' }).click();
  await field.waitFor();
  if ((await storages()).session.some((entry) => entry.includes(secret))) throw new Error('the old key is kept');
  faults.check();
  console.log('a revoked key: the stream ends, the page asks for another');
}

async function forgotten(secret) {
  await page.getByRole('button', { name: 'Forget key' }).click();
  await field.waitFor();
  const { session, local } = await storages();
  if ([...session, ...local].some((entry) => entry.includes(secret))) throw new Error('the key is kept');
  if ((await page.content()).includes(secret)) throw new Error('the page shows the key');
  console.log('forgotten');
}
