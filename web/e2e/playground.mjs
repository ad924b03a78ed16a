// Opens the playground of a server with the demo graph in open mode, and does what its
// example tabs invite to: each query and mutation is run and must be answered without
// errors and with something in it; each subscription must show a change that the page
// itself makes with the mutation tab that the subscription's comment names.
//
//   node e2e/playground.mjs --url http://127.0.0.1:8080/ [--screenshots DIR]
import { change, counterpart, executeButton, faults, follow, isStream, open, operationName, options, page, readTabs, run, screenshot, shown, take } from './browser.mjs';

const agent = { 'x-agent-id': 'agent://playground' };

await take(async () => {
  await load();
  const tabs = await readTabs();
  const channelId = await channels(tabs);
  for (const tab of tabs.filter((t) => t.operation === 'query')) await run(tab, tab.title === 'Channels'); // not each message has facts
  for (const tab of tabs.filter((t) => t.operation === 'subscription')) await follow(tab, counterpart(tab, tabs), agent, { channelId });
  for (const tab of tabs.filter((t) => t.operation === 'mutation')) await run(tab, tab.title === 'Publish'); // which says nothing new
  await tabBar();
  await narrow();
  await keptHeaders();
  await ownTabs();
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

/**
 * Where nobody has said anything yet, the tabs about channels run without an error, and
 * do what their comments say: in their order they are one story, without an id being
 * copied by hand. Returns the channel that was made last.
 */
async function channels(tabs) {
  const titles = ['OpenChannel', 'Publish', 'Channels', 'Messages'];
  const story = tabs.filter((t) => titles.includes(t.title));
  if (story.map((t) => t.title).join() !== titles.join()) throw new Error(`example tabs: ${tabs.map((t) => t.title)}`);
  for (const { title, query } of story) {
    const long = query.split('\n').find((line) => line.length > 49);
    if (long) throw new Error(`${title}: too long for the editor in a window of 1280 px: ${long}`);
  }
  const [make, publish, list, messages] = story;
  const { channels: none } = await run(list, true);
  if (none.nodes.length > 0) throw new Error(`there are channels: ${JSON.stringify(none.nodes)}`);
  if (!list.query.includes(`Run ${make.title} first`)) throw new Error('the list does not say how to come to a channel');
  await open(messages);
  const [stream] = await Promise.all([page.waitForResponse((r) => isStream(r.request())), executeButton('Execute').click()]);
  if (stream.status() !== 200) throw new Error(`${messages.title}: ${stream.status()}`);
  const text = `First said at ${Date.now()}`;
  await change(publish, { to: 'chen', text, humidity: 39 }, agent);
  await shown(text);
  await executeButton('Stop').click();
  await executeButton('Execute').waitFor();
  let channel;
  for (const round of ['first', 'second']) {
    const { createChannel: { channel: made } } = await run(make);
    await shown(made.id); // the page has read the answer
    if (made.id === channel) throw new Error(`${make.title} makes no other channel the ${round} time`);
    channel = made.id;
    for (const [sequence, facts] of [[1, round === 'first' ? 1 : 0], [2, 0]]) {
      const { publishMessage: said } = await run(publish, true);
      const got = { channel: said.message.channelId, sequence: said.message.sequence, facts: said.message.facts.nodes.length, affected: said.statementsAffected };
      const want = { channel, sequence, facts, affected: facts };
      if (JSON.stringify(got) !== JSON.stringify(want)) throw new Error(`${round} story: got ${JSON.stringify(got)}, want ${JSON.stringify(want)}`);
    }
    const { channels: listed } = await run(list, true);
    const said = listed.nodes.find((n) => n.id === channel)?.messages.nodes.map((m) => m.facts.nodes.length);
    if (String(said) !== (round === 'first' ? '0,1' : '0,0')) throw new Error(`${round} story: the list tells of messages with ${said} facts`);
    await open(messages);
    await executeButton('Execute').click();
    await shown(channel);
    await executeButton('Stop').click();
    await executeButton('Execute').waitFor();
  }
  await change(publish, { channelId: channel, humidity: 42 }, agent); // as the comment says: a new fact
  await otherWindow(publish, channel);
  console.log('channels: made, spoken in, listed, followed, twice');
  return channel;
}

/** A window that is opened later speaks in the same channel. */
async function otherWindow(publish, channel) {
  const other = await page.context().newPage();
  try {
    await other.goto(options.url, { waitUntil: 'load' });
    await other.locator('.graphiql-tab-button').nth(publish.index).click();
    await other.waitForFunction((channel) =>
      globalThis.__MONACO?.editor.getEditors().some((e) => e.getValue().includes(channel)), channel);
  } finally {
    await other.close();
  }
}

/** All tabs can be reached in a wide and in a narrow window, and the active one is in sight. */
async function tabBar() {
  const press = (name) => page.evaluate((name) => document.querySelector(name)?.click(), name);
  const [first, last, active] = [':first-child', ':last-child', '.graphiql-tab-active'].map((which) => `.graphiql-tab${which}`);
  const inSight = (tab, arrow) =>
    page.waitForFunction(([tab, arrow]) => {
      document.querySelector(arrow)?.click(); // does nothing at the end of the bar
      const outer = document.querySelector('.graphiql-tabs').getBoundingClientRect();
      const inner = document.querySelector(tab).getBoundingClientRect();
      return inner.left > outer.left - 1 && inner.right < outer.right + 1;
    }, [tab, arrow], { polling: 200 }).catch((cause) => {
      throw new Error(`${tab} is out of sight, ${arrow ?? 'without an arrow'}`, { cause });
    });
  for (const width of [1280, 420]) {
    await page.setViewportSize({ width, height: 800 });
    for (const tab of [last, first]) {
      await press(`${tab} .graphiql-tab-button`); // a click of the mouse would scroll there before
      await page.locator(`${tab}${active}`).waitFor();
      await inSight(active);
      await screenshot(`tabs-${width}-${tab === last ? 'last' : 'first'}`);
    }
    await page.getByRole('button', { name: 'Tabs before' }).and(page.locator(':disabled')).waitFor();
    await inSight(last, '[aria-label="Tabs behind"]');
    await inSight(first, '[aria-label="Tabs before"]');
    await page.locator('.graphiql-tabs').dispatchEvent('wheel', { deltaY: 10000 });
    await inSight(last);
  }
  await page.getByRole('button', { name: 'New tab' }).click();
  await page.locator(active).getByText('<untitled>').waitFor();
  await inSight(active);
  await page.setViewportSize({ width: 1280, height: 800 });
  await inSight(active);
  console.log('tabs: in sight when they are chosen or opened');
}

/** In a narrow window the panes are below each other, of its whole width, and nothing is beside it. */
async function narrow() {
  const layout = () =>
    page.evaluate(() => {
      const box = (name) => document.querySelector(name).getBoundingClientRect().toJSON();
      return { wide: document.documentElement.scrollWidth, editors: box('.graphiql-editors'), tools: box('.graphiql-editor-tools'), response: box('.graphiql-response'), sessions: box('.graphiql-sessions'), docs: document.querySelector('.graphiql-plugin') && box('.graphiql-plugin') };
    });
  for (const width of [420, 700, 701, 1280]) {
    await page.setViewportSize({ width, height: 800 });
    for (const docs of [false, true]) {
      if (docs) await page.getByRole('button', { name: 'Show Documentation Explorer' }).click();
      // The editors lay themselves out again in a frame after the resize.
      await page.waitForFunction((width) => document.documentElement.scrollWidth <= width, width, { timeout: 10_000 }).catch(() => {});
      const got = await layout();
      const fault = (what) => new Error(`at ${width} px${docs ? ' with the documentation' : ''}: ${what}: ${JSON.stringify(got)}`);
      if (got.wide > width) throw fault('the page is wider than the window');
      const stacked = got.response.top >= got.editors.bottom;
      if (stacked !== width <= 700) throw fault(stacked ? 'the panes are stacked' : 'the panes are not stacked');
      for (const pane of [got.editors, got.response, ...(docs ? [got.docs] : [])]) {
        if (pane.right > width || pane.width < 150 || pane.height < 100) throw fault('a pane has no room');
        if (stacked && pane.width < width - 100) throw fault('a pane has not the whole width');
      }
      if (got.tools.bottom > got.editors.bottom) throw fault('the variables and headers have no room');
      if (docs && stacked && got.sessions.top < got.docs.bottom) throw fault('the documentation is not stacked');
      await screenshot(`panes-${width}${docs ? '-docs' : ''}`);
      if (docs) await page.getByRole('button', { name: 'Hide Documentation Explorer' }).click();
    }
  }
  await page.setViewportSize({ width: 1280, height: 800 });
  console.log('panes: below each other in a narrow window');
}

/** Headers are kept where that was chosen, and the choice is shown as it is. */
async function keptHeaders() {
  const settings = async (act) => {
    await page.getByRole('button', { name: 'Open settings dialog' }).click();
    const choice = page.locator('.graphiql-dialog').getByRole('button', { name: /^(On|Off)$/ });
    await act((name) => choice.and(page.getByRole('button', { name, exact: true })));
    await page.keyboard.press('Escape');
    await page.locator('.graphiql-dialog').waitFor({ state: 'detached' });
  };
  const isActive = (button) => button.and(page.locator('.active')).waitFor();
  const count = await page.locator('.graphiql-tab').count();
  const reload = async () => {
    await page.waitForLoadState('networkidle'); // editors complain when what they load late does not come
    await page.reload({ waitUntil: 'load' });
    await executeButton('Execute').waitFor();
    faults.checkAllBut(/net::ERR_ABORTED/); // what the old page was still loading
    const now = await page.locator('.graphiql-tab').count();
    if (now !== count) throw new Error(`${now} tabs after reloading, ${count} before`);
  };
  const headers = '.graphiql-editor-tool .graphiql-editor:not(.hidden)';
  const write = async (agent) => {
    await page.locator(`${headers} .monaco-editor`).first().click();
    await page.keyboard.press('ControlOrMeta+A');
    await page.keyboard.press('Delete');
    await page.keyboard.insertText(JSON.stringify({ 'X-Agent-ID': agent }));
    await page.waitForFunction((agent) => localStorage.getItem('koine:graphiql:tabState').includes(`"${agent}\\"`), agent);
  };

  await settings((button) => isActive(button('Off')));
  await settings((button) => button('On').click());
  await write('agent://keeper');
  await reload();
  await settings((button) => isActive(button('On')));
  await shown('agent://keeper', headers);
  await write('agent://keeper/2'); // GraphiQL stores a moment late: what it had to store before is stored then, too
  await settings(async (button) => {
    await screenshot('settings');
    await button('Off').click();
    await isActive(button('Off'));
  });
  await reload();
  await settings((button) => isActive(button('Off')));
  const left = await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }]));
  if (left.includes('agent://keeper')) throw new Error('headers are kept that were not to be kept');
  console.log('headers: kept as chosen, and the choice is shown');
}

/** A new window has the tabs that were last; from then on each has its own, also when it is loaded again. */
async function ownTabs() {
  const tabs = (window) => window.locator('.graphiql-tab').count();
  const kept = (window, n) => window.waitForFunction((n) => JSON.parse(sessionStorage.getItem('koine:graphiql:tabState') ?? '{}').tabs?.length === n, n);
  const atRest = async (window, n) => {
    await window.getByRole('button', { name: 'Execute' }).waitFor();
    await window.waitForLoadState('networkidle');
    const now = await tabs(window);
    if (now !== n) throw new Error(`${now} tabs in a window, want ${n}`);
  };
  const reload = async (window, n) => {
    await window.waitForLoadState('networkidle'); // as in keptHeaders
    await window.reload({ waitUntil: 'load' });
    await atRest(window, n);
  };
  const count = await tabs(page);
  const other = await page.context().newPage();
  await other.goto(options.url, { waitUntil: 'load' });
  await atRest(other, count);
  await other.getByRole('button', { name: 'New tab' }).click();
  await kept(other, count + 1);
  await reload(page, count);
  await reload(other, count + 1);
  await other.close();
  faults.checkAllBut(/net::ERR_ABORTED/); // what the old page was still loading
  console.log('two windows: each has its own tabs');
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
