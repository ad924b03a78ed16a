// The official clients find the server by its card, and send, stream, get, list,
// cancel and follow there, and are notified. The server runs with --conformance-agent
// and --allow-private-webhooks.
//
//   node sdk.mjs http://127.0.0.1:8080 [1.0|0.3|''] [JSONRPC|HTTP+JSON]
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { ClientFactory as Factory1, JsonRpcTransportFactory as RPC1, RestTransportFactory as HTTP1, ServiceParameters as Parameters1, withA2AExtensions as activate1 } from 'sdk-1.0/client'
import { ClientFactory as Factory03, JsonRpcTransportFactory as RPC03, RestTransportFactory as HTTP03, ServiceParameters as Parameters03, withA2AExtensions as activate03 } from 'sdk-0.3/client'

const url = process.argv[2]
const overHTTP = process.argv[4] === 'HTTP+JSON'

// refused matches the error of a refused stream: over JSON-RPC it is told in the stream,
// with its code; over HTTP+JSON it is an answer, which the clients know by name.
const refused = (name, code) => overHTTP ? new RegExp(name) : new RegExp(code)

async function collect(stream) {
  const events = []
  for await (const event of stream) events.push(event)
  return events
}

// webhook listens; next() is what comes to it next.
async function webhook() {
  const came = []
  let wake = () => {}
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    response.end()
    came.push({ body: JSON.parse(body), headers: request.headers })
    wake()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${server.address().port}/hook`,
    async next() {
      while (came.length === 0) await new Promise((resolve) => { wake = resolve })
      return came.shift()
    },
    close() { server.close(); server.closeAllConnections() },
  }
}

// activated is what a server says is active of an extension that it has and one that
// it has not.
const channels = 'urn:koine:a2a:channels:0.1'

async function activated(header, call) {
  const plain = globalThis.fetch
  let active
  globalThis.fetch = async (...args) => {
    const response = await plain(...args)
    active = response.headers.get(header)
    return response
  }
  try {
    await call([channels, 'urn:x:unknown'])
  } finally {
    globalThis.fetch = plain
  }
  return active
}

async function version1() {
  const client = await new Factory1({ transports: [overHTTP ? new HTTP1() : new RPC1()] }).createFromUrl(url)
  assert.equal((await client.getAgentCard()).name, 'koine')
  const [user, completed, canceled] = [1, 3, 5] // Role and TaskState
  const request = (id, more = {}) => ({
    tenant: '',
    message: {
      messageId: `${id}-${randomUUID()}`, role: user, contextId: '', taskId: '', extensions: [], referenceTaskIds: [], metadata: {},
      parts: [{ content: { $case: 'text', value: 'hello' }, metadata: {}, filename: '', mediaType: '' }],
      ...more,
    },
    configuration: undefined,
    metadata: {},
  })
  const task = await client.sendMessage(request('tck-artifact-data'))
  assert.equal(task.status.state, completed)
  assert.deepEqual(task.artifacts[0].parts[0].content.value, { key: 'value', count: 42 })
  const answer = await client.sendMessage(request('tck-message-response'))
  assert.equal(answer.parts[0].content.value, 'Direct message response')
  assert.equal(await activated('a2a-extensions', (extensions) => client.sendMessage(request('tck-complete-task'), {
    serviceParameters: Parameters1.create(activate1(...extensions)),
  })), channels)
  const events = await collect(client.sendMessageStream(request('tck-stream-artifact-chunked')))
  assert.deepEqual(events.map((e) => e.payload.$case), ['task', 'statusUpdate', 'artifactUpdate', 'artifactUpdate', 'statusUpdate'])
  assert.equal((await client.getTask({ tenant: '', id: task.id })).status.state, completed)
  const list = await client.listTasks({ tenant: '', contextId: task.contextId, status: 0, pageToken: '' })
  assert.deepEqual(list.tasks.map((t) => t.id), [task.id])
  const open = await client.sendMessage(request('tck-input-required'))
  const following = client.resubscribeTask({ tenant: '', id: open.id })
  assert.equal((await following.next()).value.payload.$case, 'task')
  assert.equal((await client.cancelTask({ tenant: '', id: open.id, metadata: {} })).status.state, canceled)
  assert.equal((await following.next()).value.payload.value.status.state, canceled)
  assert.equal((await following.next()).done, true)
  await assert.rejects(client.cancelTask({ tenant: '', id: open.id, metadata: {} }), /TaskNotCancelable/)
  await assert.rejects(client.getTask({ tenant: '', id: 'none' }), /TaskNotFound/)
  await assert.rejects(collect(client.resubscribeTask({ tenant: '', id: open.id })), refused('UnsupportedOperation', '-32004'))
  await assert.rejects(collect(client.resubscribeTask({ tenant: '', id: 'none' })), refused('TaskNotFound', '-32001'))
  await assert.rejects(collect(client.sendMessageStream(request('x', { taskId: 'none' }))), refused('TaskNotFound', '-32001'))
  const image = { parts: [{ content: { $case: 'raw', value: Buffer.from('x') }, metadata: {}, filename: '', mediaType: 'image/png' }] }
  await assert.rejects(client.sendMessage(request('x', image)), /ContentTypeNotSupported/)
  const more = await client.sendMessage(request('tck-input-required'))
  const done = await client.sendMessage(request('tck-complete-task', { taskId: more.id }))
  assert.equal(done.id, more.id)
  assert.equal(done.status.state, completed)

  const hook = await webhook()
  const config = { tenant: '', id: 'mine', taskId: '', url: hook.url, token: 'the token', authentication: { scheme: 'Bearer', credentials: 'key' } }
  const along = await client.sendMessage({
    ...request('tck-artifact-text'),
    configuration: { acceptedOutputModes: [], taskPushNotificationConfig: config, returnImmediately: false },
  })
  const first = await hook.next()
  assert.equal(first.body.artifactUpdate.taskId, along.id)
  assert.equal(first.headers.authorization, 'Bearer key')
  assert.equal(first.headers['x-a2a-notification-token'], 'the token')
  assert.equal((await hook.next()).body.statusUpdate.status.state, 'TASK_STATE_COMPLETED')
  const watched = await client.sendMessage(request('tck-input-required'))
  const made = await client.createTaskPushNotificationConfig({ ...config, taskId: watched.id })
  assert.equal(made.url, hook.url)
  const where = { tenant: '', taskId: watched.id, id: 'mine' }
  assert.equal((await client.getTaskPushNotificationConfig(where)).token, 'the token')
  const all = await client.listTaskPushNotificationConfig({ tenant: '', taskId: watched.id, pageSize: 0, pageToken: '' })
  assert.deepEqual(all.configs.map((c) => c.id), ['mine'])
  await client.cancelTask({ tenant: '', id: watched.id, metadata: {} })
  const told = (await hook.next()).body.statusUpdate
  assert.deepEqual([told.taskId, told.status.state], [watched.id, 'TASK_STATE_CANCELED'])
  await client.deleteTaskPushNotificationConfig(where)
  await assert.rejects(client.getTaskPushNotificationConfig(where), /TaskNotFound/)
  hook.close()
}

async function version03() {
  const client = await new Factory03({ transports: [overHTTP ? new HTTP03() : new RPC03()] }).createFromUrl(url)
  assert.equal((await client.getAgentCard()).name, 'koine')
  const request = (id, more = {}) => ({
    message: { kind: 'message', messageId: `${id}-${randomUUID()}`, role: 'user', parts: [{ kind: 'text', text: 'hello' }], ...more },
  })
  const task = await client.sendMessage(request('tck-artifact-file'))
  assert.equal(task.status.state, 'completed')
  // The client's protocol buffers have no name of a file.
  if (!overHTTP) assert.equal(task.artifacts[0].parts[0].file.name, 'output.txt')
  assert.ok(task.artifacts[0].parts[0].file.bytes)
  assert.equal((await client.sendMessage(request('tck-message-response'))).kind, 'message')
  assert.equal(await activated('x-a2a-extensions', (extensions) => client.sendMessage(request('tck-complete-task'), {
    serviceParameters: Parameters03.create(activate03(...extensions)),
  })), channels)
  const events = await collect(client.sendMessageStream(request('tck-stream-artifact-chunked')))
  assert.deepEqual(events.map((e) => e.kind), ['task', 'status-update', 'artifact-update', 'artifact-update', 'status-update'])
  assert.equal(events.at(-1).final, true)
  assert.equal((await client.getTask({ id: task.id })).status.state, 'completed')
  const open = await client.sendMessage(request('tck-input-required'))
  assert.equal((await client.cancelTask({ id: open.id })).status.state, 'canceled')
  await assert.rejects(client.cancelTask({ id: open.id }), /TaskNotCancelable/)
  await assert.rejects(client.getTask({ id: 'none' }), /TaskNotFound/)
  await assert.rejects(collect(client.resubscribeTask({ id: open.id })), refused('UnsupportedOperation', '-32004'))
  await assert.rejects(collect(client.sendMessageStream(request('x', { taskId: 'none' }))), refused('TaskNotFound', '-32001'))
  const image = { parts: [{ kind: 'file', file: { bytes: 'eA==', mimeType: 'image/png' } }] }
  await assert.rejects(client.sendMessage(request('x', image)), /ContentTypeNotSupported/)

  const hook = await webhook()
  const watched = await client.sendMessage(request('tck-input-required'))
  const config = { url: hook.url, token: 'the token', authentication: { schemes: ['Bearer'], credentials: 'key' } }
  const made = await client.setTaskPushNotificationConfig({ taskId: watched.id, pushNotificationConfig: config })
  const where = { id: watched.id, pushNotificationConfigId: made.pushNotificationConfig.id }
  assert.equal((await client.getTaskPushNotificationConfig(where)).pushNotificationConfig.url, hook.url)
  assert.equal((await client.listTaskPushNotificationConfig({ id: watched.id })).length, 1)
  await client.cancelTask({ id: watched.id })
  const told = await hook.next()
  assert.deepEqual([told.body.kind, told.body.id, told.body.status.state], ['task', watched.id, 'canceled'])
  assert.equal(told.headers.authorization, 'Bearer key')
  assert.equal(told.headers['x-a2a-notification-token'], 'the token')
  await client.deleteTaskPushNotificationConfig(where)
  await assert.rejects(client.getTaskPushNotificationConfig(where), /TaskNotFound/)
  hook.close()
}

const only = process.argv[3] // the version, empty for both
if (only !== '0.3') {
  await version1()
  console.log('1.0 ok')
}
if (only !== '1.0') {
  await version03()
  console.log('0.3 ok')
}
