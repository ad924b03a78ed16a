package reference

import "koine/kg"

// step is an operation that populates a world. The id in its answer gets the name.
type step struct {
	by   kg.Principal
	does string
	name string
}

const shapeOfFilm = `@prefix sh: <http://www.w3.org/ns/shacl#> . @prefix ex: <https://example.org/> . ex:FilmShape a sh:NodeShape ; sh:targetClass ex:Film ; sh:property [ sh:path ex:year ; sh:nodeKind sh:Literal ; sh:severity sh:Warning ] .`

func apply(justification, patches string) string {
	return `mutation { applyPatches(input: {justification: "` + justification + `", patches: [` + patches + `]}) { success } }`
}

func fact(s, p, o string) string {
	return `{op: add, statement: {subject: {id: "` + s + `"}, predicate: {id: "` + p + `"}, object: {` + o + `}}}`
}

func said(channel, text, more string) string {
	return `mutation { publishMessage(input: {channelId: "` + channel + `", parts: [{type: "text", text: "` + text + `"}] ` + more + `}) { message { id } } }`
}

// population is what is in a world.
var population = []step{
	{root, `mutation { registerPrefix(input: {name: "ex", namespace: "https://example.org/"}) { revision } }`, ""},
	{root, `mutation { registerPrefix(input: {name: "koine", namespace: "urn:koine:vocab:"}) { revision } }`, ""},
	{root, `mutation { registerAgent(input: {agentId: "ann", card: {name: "Ann", description: "d", capabilities: ["weather"], skills: [{id: "s", name: "S"}], metadata: {big: 9007199254740993}}}) { agent { id } } }`, ""},
	{root, `mutation { registerAgent(input: {agentId: "bob", card: {name: "Bob", role: "r"}}) { agent { id } } }`, ""},
	{root, `mutation { createApiKey(input: {agentId: "ann", name: "k", roles: ["reader"]}) { key { id } } }`, "key"},
	{root, apply("types", fact("ex:ada", "rdf:type", `id: "ex:Person"`)+fact("ex:bob", "rdf:type", `id: "ex:Person"`)+fact("ex:rome", "rdf:type", `id: "ex:City"`)+fact("ex:ada", "rdfs:label", `value: "Ada"`)+
		fact("ex:bob", "rdfs:label", `value: "Bob", language: "en"`)+fact("ex:bob", "rdfs:label", `value: "Robert", language: "fr"`)+fact("ex:ada", "ex:name", `value: "Ada Lovelace"`)+fact("ex:bob", "ex:name", `value: "Bob \"the\" Builder\n"`)), ""},
	{ann, apply("values", fact("ex:ada", "ex:age", `value: 36`)+fact("ex:bob", "ex:age", `value: "36.5", type: "xsd:decimal"`)+fact("ex:cy", "ex:age", `value: 7e0`)+fact("ex:ada", "ex:born", `value: "1815-12-10", type: "xsd:date"`)+
		fact("ex:ada", "ex:likes", `value: true`)+fact("ex:rome", "ex:name", `value: "Roma", language: "it"`)+fact("ex:rome", "ex:big", `value: 9007199254740993`)), ""},
	{bob, apply("edges", `{op: add, statement: {subject: {id: "ex:ada"}, predicate: {id: "ex:knows"}, object: {id: "ex:bob"}, certainty: 0.9, provenance: {page: 3}}}`+
		`{op: add, statement: {subject: {id: "ex:ada"}, predicate: {id: "ex:knows"}, object: {id: "ex:cy"}, certainty: 0.4, validFrom: "2020-01-01T00:00:00Z"}}`+
		fact("ex:bob", "ex:knows", `id: "ex:cy"`)+fact("ex:bob", "ex:lives", `id: "ex:rome"`)+fact("ex:cy", "ex:lives", `id: "ex:rome"`)), ""},
	{ann, apply("doubt", `{op: add, statement: {subject: {id: "ex:ada"}, predicate: {id: "ex:knows"}, object: {id: "ex:bob"}, certainty: 0.3}}`+fact("ex:cy", "ex:mood", `value: "glad"`)), ""},
	{ann, `mutation { applyPatches(input: {patches: [{op: remove, statement: {subject: {id: "ex:cy"}, predicate: {id: "ex:mood"}, object: {value: "glad"}}}]}) { success } }`, ""},
	{ann, `mutation { createGraph(input: {iri: "agent://ann/notes"}) { graph { iri } } }`, ""},
	{ann, `mutation { applyPatches(input: {patches: [{op: add, statement: {subject: {id: "ex:rome"}, predicate: {id: "ex:note"}, object: {value: "far"}, graph: "agent://ann/notes"}}]}) { success } }`, ""},
	{root, apply("contradiction", fact("ex:capital", "rdf:type", `id: "owl:FunctionalProperty"`)+fact("ex:italy", "ex:capital", `id: "ex:rome"`)+fact("ex:italy", "ex:capital", `id: "ex:milan"`)+fact("ex:film", "rdf:type", `id: "ex:Film"`)+fact("ex:film", "ex:year", `id: "ex:rome"`)), ""},
	{root, `mutation { setShapes(input: {turtle: "` + shapeOfFilm + `"}) { success } }`, ""},
	{bob, `mutation { applyPatches(input: {justification: "a rise", patches: [{op: add, statement: {subject: {id: "ex:ada"}, predicate: {id: "ex:pay"}, object: {value: 5}}}]}) { proposalId } }`, "proposal"},
	{ann, `mutation { createScope(input: {title: "intent"}) { scope { id } } }`, "scope"},
	{ann, `mutation { createScope(input: {title: "task", parentId: "@scope@"}) { scope { id } } }`, "subscope"},
	{ann, `mutation { createChannel(input: {name: "lab", topic: "glass", visibility: PUBLIC, members: [{agentId: "bob", role: MODERATOR}], metadata: {a: 1}}) { channel { id } } }`, "channel"},
	{ann, `mutation { createChannel(input: {name: "own", visibility: PRIVATE}) { channel { id } } }`, "private"},
	{ann, `mutation { createChannel(input: {name: "work", scopeId: "@scope@"}) { channel { id } } }`, "work"},
	{ann, said("@channel@", "hello", `, artifactRefs: ["a1"], metadata: {b: [1.5]}, tags: ["y", "x"], threadId: "t", messageType: NOTIFY, contentType: TEXT`), "message"},
	{bob, said("@channel@", "an answer", `, replyToId: "@message@", patches: [{op: add, statement: {subject: {id: "ex:glass"}, predicate: {id: "ex:made"}, object: {value: 3}}}]`), "reply"},
	{ann, said("@channel@", "for you", `, recipient: "bob", messageType: REQUEST`), "request"},
	{bob, said("@channel@", "gone", ``), "gone"},
	{bob, `mutation { retractMessage(input: {channelId: "@channel@", messageId: "@gone@"}) { success } }`, ""},
	{ann, said("@private@", "alone", ``), "alone"},
	{ann, `mutation { sendMessage(input: {to: "bob", parts: [{text: "all of it"}]}) { task { id } } }`, "task"},
	{ann, `mutation { sendMessage(input: {to: "bob", parts: [{text: "count"}], contextId: "c", parentId: "@task@", metadata: {m: 1}, taskMetadata: {n: 1.5}}) { task { id } } }`, "subtask"},
	{bob, `mutation { reportTask(input: {taskId: "@task@", state: WORKING, message: [{text: "one"}], artifacts: [{id: "a/1", name: "sum", parts: [{text: "4"}, {data: {x: 1.5}}]}]}) { task { status { state } } } }`, ""},
	{bob, `mutation { reportTask(input: {taskId: "@subtask@", state: FAILED, failure: {code: "NO", message: "no more", details: {at: 3}}}) { task { status { state } } } }`, ""},
	{ann, said("@channel@", "done", `, artifactRefs: ["@task@/a/1", "elsewhere"], taskId: "@task@"`), "done"},
	{bob, said("@channel@", "I do", `, recipient: "ann", messageType: RESPONSE, correlationId: "@request@", idempotencyKey: "k1", format: "markdown"`), ""},
	{bob, `mutation { applyPatches(input: {patches: [{op: add, statement: {subject: {id: "ex:bob"}, predicate: {id: "ex:pay"}, object: {value: 6}}}]}) { proposalId } }`, "applied"},
	{root, `mutation { reviewProposal(input: {proposalId: "@applied@", decision: APPROVE, comment: "fine"}) { proposal { status } } }`, ""},
	{ann, `mutation { inviteAgent(input: {channelId: "@private@", agentId: "eve"}) { channel { id } } }`, ""},
	{ann, `mutation { restrictAgent(input: {channelId: "@channel@", agentId: "mallory", kind: MUTE}) { channel { id } } }`, ""},
	{root, `mutation { restrictAgent(input: {everywhere: true, agentId: "mallory", until: "2030-01-01T00:00:00Z", kind: BAN}) { channel { id } } }`, ""},
	{ann, `mutation { createChannel(input: {name: "old"}) { channel { id } } }`, "closed"},
	{ann, `mutation { closeChannel(input: {channelId: "@closed@", reason: "done"}) { channel { id } } }`, ""},
	{root, `mutation { quarantineAgent(input: {agentId: "mallory"}) { revision } }`, ""},
}
