// Somebody who knows nothing of koine but its address, and of A2A what the official
// clients do, finds out what it can, and asks it: for help, with words, with data, and
// for more than one part holds.
//
//   node self.mjs http://127.0.0.1:8080
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { ClientFactory as Factory1 } from 'sdk-1.0/client'
import { ClientFactory as Factory03 } from 'sdk-0.3/client'

const url = process.argv[2]

// client1 and client03 are the clients of both versions alike: parts go in, and what
// comes of them out.
async function client1() {
  const client = await new Factory1().createFromUrl(url)
  const request = (part) => ({
    tenant: '',
    message: {
      messageId: randomUUID(), role: 1, contextId: '', taskId: '', extensions: [], referenceTaskIds: [], metadata: {},
      parts: [{ content: { $case: Object.keys(part)[0], value: Object.values(part)[0] }, metadata: {}, filename: '', mediaType: '' }],
    },
    configuration: undefined,
    metadata: {},
  })
  const outcome = (task) => ({
    state: { 3: 'completed', 4: 'failed' }[task.status.state],
    said: task.status.message?.parts[0].content.value,
    data: task.artifacts[0]?.parts.find((p) => p.content.$case === 'data')?.content.value,
  })
  return {
    card: await client.getAgentCard(),
    ask: async (part) => outcome(await client.sendMessage(request(part))),
    follow: async function* (part) {
      for await (const { payload } of client.sendMessageStream(request(part))) {
        if (payload.$case === 'artifactUpdate') yield { chunk: payload.value.artifact.parts[0].content.value, last: payload.value.lastChunk }
        if (payload.$case === 'statusUpdate') yield { state: payload.value.status.state }
      }
    },
    done: 3,
  }
}

async function client03() {
  const client = await new Factory03().createFromUrl(url)
  const request = (part) => ({ message: { kind: 'message', messageId: randomUUID(), role: 'user', parts: [{ kind: Object.keys(part)[0], ...part }] } })
  return {
    card: await client.getAgentCard(),
    ask: async (part) => {
      const task = await client.sendMessage(request(part))
      return { state: task.status.state, said: task.status.message?.parts[0].text, data: task.artifacts?.[0]?.parts.find((p) => p.kind === 'data')?.data }
    },
    follow: async function* (part) {
      for await (const event of client.sendMessageStream(request(part))) {
        if (event.kind === 'artifact-update') yield { chunk: Buffer.from(event.artifact.parts[0].file.bytes, 'base64'), last: event.lastChunk }
        if (event.kind === 'status-update') yield { state: event.status.state }
      }
    },
    done: 'completed',
  }
}

async function play(client, iri) {
  const { card, ask, follow } = client
  // What the card shows as an example of a message is one that koine can do something with.
  for (const skill of card.skills.filter((s) => ['search', 'query', 'update'].includes(s.id))) {
    for (const text of skill.examples) {
      const { state, said } = await ask({ text })
      assert.equal(state, 'completed', `${text}: ${said}`)
    }
  }
  const nothing = await ask({ text: 'hello' })
  assert.match(nothing.said, /Nothing is known about: hello .*Send "help"/)
  const help = await ask({ text: 'help' })
  assert.match(help.said, /mutations/)
  const update = await ask({
    data: { mutations: [{ op: 'add', statement: { subject: { id: iri }, predicate: { id: 'rdfs:label' }, object: { value: `Countess ${iri}` } } }] },
  })
  assert.equal(update.data.success, true)
  assert.equal(update.said, 'Verified: 1 statement changed.')
  const found = await ask({ text: `What do you know about the countess ${iri}?` })
  assert.ok(found.data.data.recall.text.includes(iri), found.data.data.recall.text)
  assert.match(found.said, /^\d+ facts? about: .*countess/)
  const query = await ask({ data: { query: 'query($i: IRI!) { entity(iri: $i) { label } }', variables: { i: iri } } })
  assert.deepEqual(query.data.data, { entity: { label: `Countess ${iri}` } })
  const wrong = await ask({ text: `{ entity(iri: "${iri}") { lable } }` })
  assert.equal(wrong.state, 'failed')
  assert.match(wrong.said, /Did you mean "label".*line 1, column/)
  // More than one part holds comes in chunks.
  const long = 'x'.repeat(60_000)
  for (let i = 0; i < 8; i++) {
    await ask({ data: { mutations: [{ op: 'add', statement: { subject: { id: iri }, predicate: { id: 'urn:x:long' }, object: { value: `${i}${long}` } } }] } })
  }
  const chunks = []
  let last, state
  for await (const event of follow({ text: `{ entity(iri: "${iri}") { values(predicate: "urn:x:long", first: 20) } }` })) {
    if (event.chunk) {
      chunks.push(Buffer.from(event.chunk))
      last = event.last
    }
    state = event.state ?? state
  }
  assert.ok(chunks.length > 1 && last && state === client.done, `${chunks.length} chunks, ${last}, ${state}`)
  assert.equal(JSON.parse(Buffer.concat(chunks).toString()).data.entity.values.length, 8)
}

await play(await client1(), 'urn:x:ada-1')
console.log('1.0 ok')
await play(await client03(), 'urn:x:ada-03')
console.log('0.3 ok')
