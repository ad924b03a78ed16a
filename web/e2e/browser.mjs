// What the walks have in common: headless Chromium with every outside host
// unresolvable, one page in it, what must not happen there, and what one does with
// the playground.
import { mkdtempSync, mkdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { parse } from 'graphql';
import { chromium } from 'playwright-core';

const text = { type: 'string' };
/** What the walk was told. Which of these it needs, it says itself. */
export const { values: options } = parseArgs({
  options: {
    url: text, // of koine
    koine: text, // the program, for a walk that runs it itself
    data: text, // and its data directory
    admin: text, // an administrator's key
    open: text, // url of a koine in open mode
    allowed: text, // a page of an origin that koine lets in
    foreign: text, // a page of one that it does not
    screenshots: text,
    browser: { type: 'string', default: '/usr/bin/chromium' },
    timeout: { type: 'string', default: '90000' },
  },
});
if (!options.url && !options.koine) throw new Error('--url is missing');

const profile = mkdtempSync(join(tmpdir(), 'koine-playground-'));
const context = await chromium.launchPersistentContext(profile, {
  executablePath: options.browser,
  headless: true,
  handleSIGTERM: false,
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
context.setDefaultTimeout(Number(options.timeout));

/** Whether the page has a network. What the walk asks itself goes through all the same. */
export const setOnline = (online) => context.setOffline(!online);

export const page = context.pages()[0] ?? (await context.newPage());
export const faults = watchForFaults();
const traffic = watchTraffic();

/**
 * Takes the walk and ends the browser. The process ends with status 0 and a line per
 * step, or with 1 and what was wrong.
 */
export async function take(walk) {
  try {
    await Promise.race([walk(), terminated()]);
    console.log('ok');
  } catch (error) {
    await screenshot('failed').catch(() => {});
    console.error([error.stack, ...faults.found].join('\n'));
    console.error(await situation());
    process.exitCode = 1;
  } finally {
    await context.close();
    rmSync(profile, { recursive: true, force: true });
  }
}

/** Fails when whoever started the walk gives it no more time. */
function terminated() {
  return new Promise((_, reject) => process.once('SIGTERM', () => reject(new Error('terminated'))));
}

/** Collects what must not happen: failed requests, errors, warnings, and requests to other hosts. */
function watchForFaults() {
  const found = [];
  const add = (fault) => found.push(fault.slice(0, 500));
  page.on('pageerror', (error) => add(`script error: ${error.message}`));
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) add(`console: ${message.text()}`);
  });
  page.on('request', (request) => {
    const url = new URL(request.url());
    if (url.protocol !== 'data:' && url.origin !== new URL(options.url).origin) add(`request to another host: ${url}`);
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
    /** Takes those away that were meant to be, and fails if there are others. */
    checkAllBut(pattern) {
      found.splice(0, found.length, ...found.filter((fault) => !pattern.test(fault)));
      this.check();
    },
  };
}

/** Keeps the last requests, with what became of them, for whoever has to find out what went wrong. */
function watchTraffic() {
  const kept = 20;
  const start = Date.now();
  const exchanges = new Map();
  const note = (request, what) => exchanges.get(request)?.push(`${Date.now() - start} ms ${what}`);
  page.on('request', (request) => {
    exchanges.set(request, []);
    if (exchanges.size > kept) exchanges.delete(exchanges.keys().next().value);
    note(request, [request.method(), new URL(request.url()).pathname, operationName(request)].join(' '));
  });
  page.on('response', (response) => note(response.request(), response.status()));
  page.on('requestfinished', (request) => note(request, 'finished'));
  page.on('requestfailed', (request) => note(request, request.failure()?.errorText));
  return () => [...exchanges.values()].map((events) => events.join(', '));
}

/** What the page looks like, in words. */
async function situation() {
  const part = async (name, read) => `--- ${name}:\n${await read().catch((error) => error.message)}`;
  // A page that hangs must not keep the walk from telling the rest.
  const soon = { timeout: 5000 };
  return [
    await part('tab', () => page.locator('.graphiql-tab-active').first().innerText(soon)),
    await part('execute button', () => page.locator('.graphiql-execute-button').getAttribute('aria-label', soon)),
    await part('query', () => editorText('.graphiql-query-editor', soon)),
    await part('response', () => editorText('.graphiql-response', soon)),
    await part('documentation', () => page.locator('.graphiql-plugin').innerText(soon)),
    await part('last requests', async () => traffic().join('\n')),
  ].join('\n');
}

export function isStream(request) {
  return request.headers().accept === 'text/event-stream';
}

/** The name of the operation that is posted, if any. */
export function operationName(request) {
  const isJSON = request.headers()['content-type']?.startsWith('application/json');
  return request.method() === 'POST' && isJSON ? request.postDataJSON()?.operationName : undefined;
}

/** The open tabs with the kind of their operation, in order. */
export async function readTabs() {
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

export async function open(tab) {
  await page.locator('.graphiql-tab-button').nth(tab.index).click();
  await page.locator('.graphiql-tab-active').getByText(tab.title, { exact: true }).waitFor();
  await shown(`${tab.operation} ${tab.title}`, '.graphiql-query-editor');
}

/** Runs a query or mutation tab; its answer must have data, none of it missing unless that may be, no errors, and be shown. */
export async function run(tab, mayBeEmpty = false) {
  await open(tab);
  const [answered] = await Promise.all([
    page.waitForResponse((r) => operationName(r.request()) === tab.title),
    executeButton('Execute').click(),
  ]);
  const answer = await answered.json();
  if (mayBeEmpty ? answer.errors : isEmpty(answer)) throw new Error(`${tab.title}: ${JSON.stringify(answer, null, 2)}`);
  await shown('"data"');
  await screenshot(tab.title);
  console.log(`${tab.operation} ${tab.title}: answered`);
  return answer.data;
}

/** Runs a subscription tab, makes a change by POST from within the page with the headers and variables, and waits to see it. */
export async function follow(tab, mutation, headers, variables) {
  await open(tab);
  const [stream] = await Promise.all([
    page.waitForResponse((r) => isStream(r.request())),
    executeButton('Execute').click(),
  ]);
  const type = stream.headers()['content-type'];
  if (!type?.startsWith('text/event-stream')) throw new Error(`${tab.title}: answered with ${type}`);
  // A change made before the stream knows its start would be part of what stood then, and prove
  // nothing. The last event of what stood then is the first to have a position.
  await shown('"position"');
  const now = Date.now();
  const comment = `Seen at ${now}`;
  await change(mutation, { comment, text: comment, humidity: now, ...variables }, headers);
  await shown(comment);
  await screenshot(tab.title);
  await executeButton('Stop').click();
  await executeButton('Execute').waitFor();
  console.log(`subscription ${tab.title}: saw the change, stopped`);
}

/** Opens a new tab with an operation in it, on one line: the editor indents what has several. */
export async function write(text) {
  const operation = text.replaceAll(/#.*$/gm, '').replaceAll(/\s+/g, ' ').trim();
  await page.getByRole('button', { name: 'New tab' }).click();
  await page.locator('.graphiql-query-editor .monaco-editor').click();
  await page.keyboard.press('ControlOrMeta+A');
  await page.keyboard.insertText(operation);
  await shown(operation, '.graphiql-query-editor');
}

/** The tab that a subscription tab tells one to run, to see something come. */
export function counterpart(tab, tabs) {
  const [, title] = tab.query.replaceAll('\n# ', ' ').match(/then run (\w+) in a second window/) ?? [];
  const found = tabs.find((t) => t.title === title && t.operation === 'mutation');
  if (!found) throw new Error(`${tab.title} does not say what to run`);
  return found;
}

/** Sends the mutation as the page would, with the headers and variables of its own, so that it is a change each time. */
export async function change(mutation, variables, headers) {
  const answer = await page.evaluate(
    async ([body, headers]) => {
      const response = await fetch('graphql', {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: JSON.stringify(body),
      });
      return response.json();
    },
    [{ query: mutation.query, operationName: mutation.title, variables }, headers],
  );
  if (isEmpty(answer)) throw new Error(`${mutation.title}: ${JSON.stringify(answer, null, 2)}`);
}

/** Whether an answer lacks something: it has errors, a root field that is null, or a list without elements. */
export function isEmpty({ data, errors }) {
  const hollow = (value) => Array.isArray(value) ? value.length === 0 || value.some(hollow)
    : value !== null && typeof value === 'object' && Object.values(value).some(hollow);
  return errors || !data || Object.values(data).some((root) => root === null || hollow(root));
}

/** The button that runs what is in the editor, only while it does what is asked for: Execute or Stop. */
export function executeButton(action) {
  return page.locator(`.graphiql-execute-button[aria-label^="${action}"]`);
}

/**
 * Waits until an editor holds the text and shows it. An editor draws the lines in its viewport only, and
 * breaks them where it likes: the text is looked up in what the editor holds, scrolled to, and then must
 * be among the lines on the page.
 */
export async function shown(text, container = '.graphiql-response') {
  const look = ([text, container]) => {
    const within = (editor) => editor.getContainerDomNode().closest(container);
    const editor = globalThis.__MONACO?.editor.getEditors().find(within);
    const [found] = editor?.getModel()?.findMatches(text, false, false, true, null, false, 1) ?? [];
    if (!found) return false;
    editor.revealRangeInCenterIfOutsideViewport(found.range, 1); // without an animation
    const lines = editor.getContainerDomNode().querySelector('.view-lines');
    const compact = (s) => s.replaceAll(/\s/g, '');
    // The lines stand in the document in the order of their making.
    const drawn = [...lines.children].sort((a, b) => a.offsetTop - b.offsetTop).map((line) => line.textContent);
    return lines.checkVisibility() && compact(drawn.join('')).includes(compact(text));
  };
  await page.waitForFunction(look, [text, container], { polling: 100 }).catch((error) => {
    throw new Error(`waiting for ${text} in ${container}`, { cause: error });
  });
}

/** All that an editor holds. */
export function editorText(container, options) {
  return page.locator(`${container} .monaco-editor`).first().evaluate((element) =>
    globalThis.__MONACO.editor.getEditors().find((e) => e.getContainerDomNode().contains(element)).getValue(), undefined, options);
}

export async function screenshot(name) {
  if (!options.screenshots) return;
  mkdirSync(options.screenshots, { recursive: true });
  await page.screenshot({ path: join(options.screenshots, `${name}.png`) });
}
