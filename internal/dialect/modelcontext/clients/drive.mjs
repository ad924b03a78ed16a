// Reads operations as lines of JSON and writes a line for each: {id, result} or {id, error}.
// {id, connect: {name, sdk: 1 | 2, command, args, env} | {name, sdk, url, headers}} opens a
// client, {id, client: name, call: method, with: [arguments]} calls one of its methods,
// {id, client: name, updated: uri} waits for a notification about a resource,
// {id, client: name, tool, arguments, stopAfter: ms} calls a tool, counts the reports of its
// progress and, with stopAfter, cancels it, and {id, discover: url} reads the OAuth metadata as
// clients do that were refused.
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
  const updated = [], waiting = []
  client.fallbackNotificationHandler = async ({ method, params }) => {
    if (method !== 'notifications/resources/updated') return
    updated.push(params.uri)
    waiting.splice(0).forEach((look) => look())
  }
  await client.connect(transport)
  clients.set(name, { client, updated, waiting })
  return { server: client.getServerVersion(), capabilities: client.getServerCapabilities(), session: transport.sessionId ?? null }
}

async function run(o) {
  if (o.connect) return connect(o.connect)
  if (o.discover) return discoverOAuthProtectedResourceMetadata(o.discover)
  const { client, updated, waiting } = clients.get(o.client)
  if (o.updated) {
    while (!updated.includes(o.updated)) await new Promise((look) => waiting.push(look))
    updated.splice(updated.indexOf(o.updated), 1)
    return updated
  }
  if (o.tool) {
    let progress = 0
    const stop = new AbortController()
    if (o.stopAfter) setTimeout(() => stop.abort('enough'), o.stopAfter)
    const options = { onprogress: () => progress++, signal: stop.signal }
    const call = { name: o.tool, arguments: o.arguments }
    return client.callTool(...(client instanceof Client1 ? [call, undefined, options] : [call, options])).then(
      (result) => ({ result, progress }), (error) => ({ stopped: String(error?.message ?? error), progress }))
  }
  if (o.call === 'listen') return void (await client.listen(...o.with))
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
