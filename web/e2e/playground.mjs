// Opens a server with the demo graph in headless Chromium, with every outside host
// unresolvable, and does what the playground's example tabs invite to: each query and
// mutation is run and must be answered without errors and with something in it; each
// subscription must show a change that the page itself makes with the first mutation tab.
//
//   node e2e/playground.mjs --url http://127.0.0.1:8080/ [--screenshots DIR]
//
// Ends with status 0 and a line per step, or with 1 and what was wrong.
import { mkdtempSync, mkdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { parse } from 'graphql';
import { chromium } from 'playwright-core';

const { values: options } = parseArgs({
  options: {
    url: { type: 'string' },
    screenshots: { type: 'string' },
    browser: { type: 'string', default: '/usr/bin/chromium' },
    timeout: { type: 'string', default: '30000' },
  },
});
if (!options.url) throw new Error('--url is missing');
const timeout = Number(options.timeout);

const profile = mkdtempSync(join(tmpdir(), 'koine-playground-'));
const context = await chromium.launchPersistentContext(profile, {
  executablePath: options.browser,
  headless: true,
  viewport: { width: 1280, height: 800 },
  colorScheme: 'light',
  args: [
    '--no-sandbox',
    '--disable-gpu',
    '--disable-quic',
    '--no-first-run',
    '--disable-background-networking',
    '--disable-component-update',
    '--disable-sync',
    '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1',
  ],
});
context.setDefaultTimeout(timeout);

const page = context.pages()[0] ?? (await context.newPage());
const faults = watchForFaults(page);

try {
  await load();
  const tabs = await readTabs();
  for (const tab of tabs.filter((t) => t.operation === 'query')) await run(tab);
  const mutations = tabs.filter((t) => t.operation === 'mutation');
  for (const tab of tabs.filter((t) => t.operation === 'subscription')) await follow(tab, mutations[0]);
  for (const tab of mutations) await run(tab);
  await licences();
  await darkTheme();
  faults.check();
  await refusal();
  console.log('ok');
} catch (error) {
  await screenshot('failed').catch(() => {});
  console.error([error.stack, ...faults.found].join('\n'));
  process.exitCode = 1;
} finally {
  await context.close();
  rmSync(profile, { recursive: true, force: true });
}

/** Collects what must not happen: failed requests, errors, warnings, and requests to other hosts. */
function watchForFaults(page) {
  const found = [];
  const add = (fault) => found.push(fault.slice(0, 500));
  const origin = new URL(options.url).origin;
  page.on('pageerror', (error) => add(`script error: ${error.message}`));
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) add(`console: ${message.text()}`);
  });
  page.on('request', (request) => {
    const url = new URL(request.url());
    if (url.protocol !== 'data:' && url.origin !== origin) add(`request to another host: ${url}`);
  });
  page.on('requestfailed', (request) => {
    const reason = request.failure()?.errorText;
    // Stopping a subscription aborts its request.
    if (reason === 'net::ERR_ABORTED' && isStream(request)) return;
    add(`request failed: ${request.url()}: ${reason}`);
  });
  page.on('response', (response) => {
    if (response.status() >= 400) add(`status ${response.status()}: ${response.url()}`);
  });
  return {
    found,
    check() {
      if (found.length > 0) throw new Error('the browser reported faults');
    },
  };
}

function isStream(request) {
  return request.headers().accept === 'text/event-stream';
}

async function load() {
  const response = await page.goto(options.url, { waitUntil: 'load' });
  const home = new URL('playground', options.url).href;
  if (page.url() !== home) throw new Error(`a browser is sent to ${page.url()}, want ${home}`);
  const policy = response.headers()['content-security-policy'] ?? '';
  if (!policy.startsWith("default-src 'none'")) throw new Error(`content security policy: ${policy}`);
  await page.locator('.graphiql-query-editor .view-line').first().waitFor();
  await page.locator('.graphiql-execute-button').waitFor();
  const title = await page.title();
  if (title !== 'koine') throw new Error(`title: got ${title}, want koine`);
  // The schema has been read when the editor knows its root types.
  await page.getByRole('button', { name: 'Show Documentation Explorer' }).click();
  await page.locator('.graphiql-doc-explorer').getByText('Query', { exact: true }).first().waitFor();
  await screenshot('documentation');
  await page.getByRole('button', { name: 'Hide Documentation Explorer' }).click();
  console.log(`loaded ${page.url()}`);
}

/** The open tabs with the kind of their operation, in order. */
async function readTabs() {
  // GraphiQL stores its tabs a moment after it has shown them.
  await page.waitForFunction(() => localStorage.getItem('koine:graphiql:tabState'));
  const stored = await page.evaluate(() => localStorage.getItem('koine:graphiql:tabState'));
  const tabs = JSON.parse(stored).tabs.map((tab, index) => {
    const document = parse(tab.query);
    return { index, title: tab.title, query: tab.query, document, operation: document.definitions[0].operation };
  });
  for (const kind of ['query', 'mutation', 'subscription']) {
    if (!tabs.some((tab) => tab.operation === kind)) throw new Error(`no example tab with a ${kind}`);
  }
  return tabs;
}

async function open(tab) {
  await page.locator('.graphiql-tab-button').nth(tab.index).click();
  await page.locator('.graphiql-query-editor').getByText(tab.title).first().waitFor();
}

/** Runs a query or mutation tab; its answer must have data, none of it missing, no errors, and be shown. */
async function run(tab) {
  await open(tab);
  const answered = page.waitForResponse((r) => r.request().method() === 'POST' && r.request().postDataJSON()?.operationName === tab.title);
  await page.locator('.graphiql-execute-button').click();
  const answer = await (await answered).json();
  if (isEmpty(answer)) throw new Error(`${tab.title}: ${JSON.stringify(answer, null, 2)}`);
  await shown('"data"');
  await screenshot(tab.title);
  console.log(`${tab.operation} ${tab.title}: answered`);
}

/** Runs a subscription tab, makes a change by POST from within the page, and waits to see it. */
async function follow(tab, mutation) {
  await open(tab);
  const streaming = page.waitForResponse((r) => isStream(r.request()));
  await page.locator('.graphiql-execute-button').click();
  const type = (await streaming).headers()['content-type'];
  if (!type?.startsWith('text/event-stream')) throw new Error(`${tab.title}: answered with ${type}`);
  // The page shows the newest event only, and a change made before the stream knows its start would
  // be one of many in what stood then. The last event of those is the first to have a position.
  await shown('"position"');
  const comment = `Seen at ${Date.now()}`;
  await change(mutation, comment);
  await shown(comment);
  await screenshot(tab.title);
  await page.locator('.graphiql-execute-button').click();
  await page.getByRole('button', { name: /^Execute query/ }).waitFor();
  console.log(`subscription ${tab.title}: saw the change, stopped`);
}

/** Sends the mutation as the page would, with a text of its own, so that it is a change each time. */
async function change(mutation, comment) {
  const answer = await page.evaluate(
    async (body) => {
      const response = await fetch('graphql', {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-agent-id': 'agent://playground' },
        body: JSON.stringify(body),
      });
      return response.json();
    },
    { query: mutation.query, operationName: mutation.title, variables: { comment } },
  );
  if (isEmpty(answer)) throw new Error(`${mutation.title}: ${JSON.stringify(answer, null, 2)}`);
}

/** Whether an answer lacks something: it has errors, a root field that is null, or a list without elements. */
function isEmpty({ data, errors }) {
  const hollow = (value) => Array.isArray(value) ? value.length === 0 || value.some(hollow)
    : value !== null && typeof value === 'object' && Object.values(value).some(hollow);
  return errors || !data || Object.values(data).some((root) => root === null || hollow(root));
}

async function shown(text) {
  await page.locator('.graphiql-response .view-lines').getByText(text).first().waitFor();
}

async function licences() {
  const address = await page.getByRole('link', { name: 'Licences' }).getAttribute('href');
  const response = await page.request.get(address);
  const text = await response.text();
  if (response.status() !== 200 || !text.includes('graphiql')) throw new Error(`licences: ${response.status()} ${text.slice(0, 200)}`);
  console.log('licences: readable');
}

/** A subscription that the server refuses shows why. Browsers report its status as a fault. */
async function refusal() {
  await page.getByRole('button', { name: 'New tab' }).click();
  await page.locator('.graphiql-query-editor .monaco-editor').click();
  await page.keyboard.press('ControlOrMeta+A');
  await page.keyboard.insertText('subscription Refused { noSuchField }');
  await page.locator('.graphiql-execute-button').click();
  await shown('"errors"');
  await shown('noSuchField');
  await page.getByRole('button', { name: /^Execute query/ }).waitFor();
  await screenshot('refusal');
  console.log('refused subscription: shows why');
}

/** The editors follow the system's theme, like the rest of the page. */
async function darkTheme() {
  const textColour = () =>
    page.locator('.graphiql-response .monaco-editor').first().evaluate((editor) => getComputedStyle(editor).color);
  const light = await textColour();
  await page.emulateMedia({ colorScheme: 'dark' });
  await page.locator('.graphiql-response .monaco-editor.vs-dark').waitFor();
  if ((await textColour()) === light) throw new Error(`the editors stay light: ${light}`);
  await screenshot('dark');
  console.log('theme: follows the system');
}

async function screenshot(name) {
  if (!options.screenshots) return;
  mkdirSync(options.screenshots, { recursive: true });
  await page.screenshot({ path: join(options.screenshots, `${name}.png`) });
}
