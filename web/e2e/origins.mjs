// Opens pages of two other origins, of which a server with keys lets one in, and lets
// them try what a page can: read the agent card, ask with and without a key, follow a
// stream, open a WebSocket. A server in open mode lets neither in.
//
//   node e2e/origins.mjs --url http://127.0.0.1:8080/ --admin ak_live_… --open http://127.0.0.1:8081/ \
//     --allowed http://127.0.0.1:9001 --foreign http://127.0.0.1:9002
import { options, page, take } from './browser.mjs';

const bearer = `Bearer ${options.admin}`;
const json = { 'content-type': 'application/json' };
const me = JSON.stringify({ query: '{ me { id } }' });
const post = { method: 'POST', body: me };

await take(async () => {
  await page.goto(options.allowed, { waitUntil: 'load' });
  await welcome();
  await page.goto(options.foreign, { waitUntil: 'load' });
  await keptOut('a page of an origin that is not named', options.url);
  await keptOut('a page, of a server in open mode', options.open);
  // Its own page is let in everywhere.
  await page.goto(options.open, { waitUntil: 'load' });
  await expect('the own page reads', fetched(options.open, 'graphql', { ...post, headers: json }), 200, '"me"');
  await page.goto(options.allowed, { waitUntil: 'load' });
  await keptOut('a page that another server lets in', options.open);
});

/** What the page is told of a request: its status and text, or that it may not know. */
function fetched(server, path, init = {}) {
  return page.evaluate(async ([url, init]) => {
    try {
      const response = await fetch(url, init);
      return { status: response.status, text: await response.text(), id: response.headers.get('x-request-id') };
    } catch (error) {
      return { failed: error.name };
    }
  }, [new URL(path, server).href, init]);
}

/**
 * What becomes of a WebSocket: the messages up to the answer, or how it closed. A page
 * that is too slow with its first message (4408) tries again.
 */
async function socket(server, init) {
  for (;;) {
    const told = await oneSocket(server, init);
    if (told.code !== 4408) return told;
  }
}

function oneSocket(server, init) {
  const url = new URL('graphql', server).href.replace(/^http/, 'ws');
  return page.evaluate(([url, init, query]) => new Promise((resolve) => {
    const got = [];
    let opened = false;
    const ws = new WebSocket(url, 'graphql-transport-ws');
    ws.onopen = () => {
      opened = true;
      ws.send(JSON.stringify({ type: 'connection_init', payload: init }));
    };
    ws.onmessage = ({ data }) => {
      const message = JSON.parse(data);
      got.push(message.type);
      if (message.type === 'connection_ack') {
        ws.send(JSON.stringify({ type: 'subscribe', id: '1', payload: { query } }));
      } else if (message.type !== 'ping') {
        resolve({ opened, got, text: data });
        ws.close();
      }
    };
    ws.onclose = ({ code }) => resolve({ opened, got, code });
  }), [url, init, '{ me { id } }']);
}

async function expect(what, asked, status, text = '') {
  const answer = await asked;
  const found = answer.status ?? answer.failed;
  if (found !== status || !(answer.text ?? '').includes(text)) {
    throw new Error(`${what}: got ${JSON.stringify(answer).slice(0, 500)}, want ${status} ${text}`);
  }
  console.log(`${what}: ${status}`);
  return answer;
}

/** The page that is let in reads answers and refusals, with its own key. */
async function welcome() {
  const { url } = options;
  await expect('the card', fetched(url, '.well-known/agent-card.json'), 200, '"securitySchemes"');
  const answer = await expect('a query, after a preflight', fetched(url, 'graphql', { ...post, headers: { ...json, authorization: bearer } }), 200, 'agent://admin');
  if (!answer.id) throw new Error('the page cannot read X-Request-ID');
  await expect('a call over JSON-RPC', fetched(url, 'a2a', {
    method: 'POST',
    headers: { ...json, 'x-api-key': options.admin },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'knowledge/query', params: { query: '{ me { id } }' } }),
  }), 200, 'agent://admin');
  await expect('without a key', fetched(url, 'graphql', { ...post, headers: json }), 401, 'UNAUTHENTICATED');
  await expect('a wrong key', fetched(url, 'graphql', { ...post, headers: { ...json, authorization: 'Bearer ak_live_wrong' } }), 401, 'UNAUTHENTICATED');
  await expect('with cookies', fetched(url, 'graphql', { ...post, headers: { ...json, authorization: bearer }, credentials: 'include' }), 'TypeError');
  await expect('metrics', fetched(url, 'metrics', { headers: { authorization: bearer } }), 'TypeError');
  const stream = await page.evaluate(async ([url, authorization]) => {
    const response = await fetch(url, { headers: { authorization, accept: 'text/event-stream' } });
    const reader = response.body.getReader();
    const { value } = await reader.read();
    await reader.cancel();
    return { status: response.status, text: new TextDecoder().decode(value) };
  }, [new URL('changes?resume=snapshot', url).href, bearer]);
  await expect('a stream', stream, 200);
  const told = await socket(url, { authorization: bearer });
  if (!told.text?.includes('agent://admin')) throw new Error(`a WebSocket: ${JSON.stringify(told)}`);
  const wrong = await socket(url, { authorization: 'Bearer ak_live_wrong' });
  if (wrong.code !== 4401 || wrong.got.includes('connection_ack')) throw new Error(`a WebSocket with a wrong key: ${JSON.stringify(wrong)}`);
  console.log('a WebSocket: with its key only');
}

/** The page that is not let in learns nothing, with the best key, and changes nothing. */
async function keptOut(who, url) {
  console.log(`${who}:`);
  const headers = { ...json, authorization: bearer };
  await expect('  the card', fetched(url, '.well-known/agent-card.json'), 'TypeError');
  await expect('  a query', fetched(url, 'graphql', { ...post, headers }), 'TypeError');
  await expect('  a query without a preflight', fetched(url, 'graphql', { ...post, headers: { 'content-type': 'text/plain' } }), 'TypeError');
  await expect('  changes', fetched(url, 'changes'), 'TypeError');
  await expect('  metrics', fetched(url, 'metrics'), 'TypeError');
  // Sent all the same, as a browser lets any page do: refused, and so nothing is written.
  const answered = page.waitForResponse((r) => new URL(r.url()).pathname.endsWith('/data'));
  await expect('  an update that is not read', fetched(url, 'data?graph=https://example.org/foreign', {
    method: 'POST', mode: 'no-cors', headers: { 'content-type': 'text/plain' }, body: '<urn:x:a> <urn:x:b> <urn:x:c> .',
  }), 0);
  const status = (await answered).status();
  if (status !== 403) throw new Error(`an update: got ${status}, want 403`);
  const told = await socket(url, { authorization: bearer });
  if (told.opened || told.code !== 1006) throw new Error(`a WebSocket: ${JSON.stringify(told)}`);
  const written = await stands(url);
  if (written.includes('urn:x:a')) throw new Error(`something was written: ${written}`);
  console.log('  a WebSocket, an update: refused');
}

/** What stands about the foreign page's statement, asked outside of the page. */
async function stands(url) {
  const response = await page.request.post(new URL('graphql', url).href, {
    headers: url === options.url ? { authorization: bearer } : {},
    data: { query: '{ statements(where: {subject: {eq: "urn:x:a"}}, view: {allGraphs: true}) { nodes { subject { id } } } }' },
  });
  const { data, errors } = await response.json();
  if (errors) throw new Error(JSON.stringify(errors));
  return JSON.stringify(data);
}
