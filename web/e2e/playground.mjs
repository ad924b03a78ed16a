// Opens the playground of a server with the demo graph in open mode, and does what its
// example tabs invite to: each query and mutation is run and must be answered without
// errors and with something in it; each subscription must show a change that the page
// itself makes with the first mutation tab.
//
//   node e2e/playground.mjs --url http://127.0.0.1:8080/ [--screenshots DIR]
import { executeButton, faults, follow, operationName, options, page, readTabs, run, screenshot, shown, take } from './browser.mjs';

await take(async () => {
  await load();
  const tabs = await readTabs();
  for (const tab of tabs.filter((t) => t.operation === 'query')) await run(tab);
  const mutations = tabs.filter((t) => t.operation === 'mutation');
  for (const tab of tabs.filter((t) => t.operation === 'subscription')) await follow(tab, mutations[0], { 'x-agent-id': 'agent://playground' });
  for (const tab of mutations) await run(tab);
  await licences();
  await darkTheme();
  faults.check();
  await refusal();
});

async function load() {
  const [response, introspected] = await Promise.all([
    page.goto(options.url, { waitUntil: 'load' }),
    page.waitForResponse((r) => operationName(r.request()) === 'IntrospectionQuery'),
  ]);
  const home = new URL('playground', options.url).href;
  if (page.url() !== home) throw new Error(`a browser is sent to ${page.url()}, want ${home}`);
  const policy = response.headers()['content-security-policy'] ?? '';
  if (!policy.startsWith("default-src 'none'")) throw new Error(`content security policy: ${policy}`);
  await page.locator('.graphiql-query-editor .view-line').first().waitFor();
  await executeButton('Execute').waitFor();
  const { data } = await introspected.json();
  if (!data?.__schema) throw new Error('the schema was not answered');
  const title = await page.title();
  if (title !== 'koine') throw new Error(`title: got ${title}, want koine`);
  // The schema has been read when the editor knows its root types.
  await page.getByRole('button', { name: 'Show Documentation Explorer' }).click();
  await page.locator('.graphiql-doc-explorer').getByText('Query', { exact: true }).first().waitFor();
  await screenshot('documentation');
  await page.getByRole('button', { name: 'Hide Documentation Explorer' }).click();
  console.log(`loaded ${page.url()}`);
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
  await executeButton('Execute').click();
  await shown('"errors"');
  await shown('noSuchField');
  await executeButton('Execute').waitFor();
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
