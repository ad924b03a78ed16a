// Reads operations as lines of JSON and writes a line for each: {id, result} or {id, error}.
// {id, connect: {name, sdk: 1 | 2, command, args, env} | {name, sdk, url, headers}} opens a
// client, {id, discover: url} reads its OAuth metadata as clients do that were refused,
// {id, client: name, call: method, with: [arguments]} calls one of its methods, and
// {id, client: name, notified: method, uri} waits for a notification of the server.
import { createInterface } from 'node:readline'
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport as Stdio1 } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport as HTTP1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { discoverOAuthProtectedResourceMetadata } from '@modelcontextprotocol/sdk/client/auth.js'
import { Client as Client2, StreamableHTTPClientTransport as HTTP2 } from '@modelcontextprotocol/client'
import { StdioClientTransport as Stdio2 } from '@modelcontextprotocol/client/stdio'

const clients = new Map()

async function connect({ name, sdk, command, args, env, url, headers }) {
  const info = { name: 'koine-test', version: '1' }
  const client = sdk === 1 ? new Client1(info) : new Client2(info, { versionNegotiation: { mode: 'auto' } })
  const [Stdio, HTTP] = sdk === 1 ? [Stdio1, HTTP1] : [Stdio2, HTTP2]
  const transport = command
    ? new Stdio({ command, args, env: { ...process.env, ...env }, stderr: 'inherit' })
    : new HTTP(new URL(url), { requestInit: { headers } })
  await client.connect(transport)
  clients.set(name, { client, transport })
  return { server: client.getServerVersion(), capabilities: client.getServerCapabilities(), session: transport.sessionId ?? null }
}

async function run(o) {
  if (o.connect) return connect(o.connect)
  if (o.discover) return discoverOAuthProtectedResourceMetadata(o.discover)
  const { client } = clients.get(o.client)
  if (o.call === 'close') return client.close()
  return client[o.call](...(o.with ?? []))
}

for await (const line of createInterface({ input: process.stdin })) {
  const o = JSON.parse(line)
  run(o).then(
    (result) => console.log(JSON.stringify({ id: o.id, result: result ?? null })),
    (error) => console.log(JSON.stringify({ id: o.id, error: String(error?.message ?? error), code: error?.code })),
  )
}
process.exit(0)
