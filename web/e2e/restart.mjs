// Runs koine itself, and takes it away and brings it back while the playground is open:
// the page says in plain words that nobody answers.
//
//   node e2e/restart.mjs --koine PROGRAM --data DIR [--screenshots DIR]
import { executeButton, faults, open, options, page, readTabs, run, screenshot, shown, take } from './browser.mjs';
import { Server } from './server.mjs';

const server = new Server(options.koine, options.data);

await take(async () => {
  try {
    options.url = `${await server.start()}/`;
    await page.goto(options.url, { waitUntil: 'load' });
    await executeButton('Execute').waitFor();
    const tabs = await readTabs();
    await plainWords(tabs);
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
