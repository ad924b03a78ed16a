// Package reference compares the engine with graphql-js, the reference implementation of
// GraphQL, on random documents over the whole schema. It holds tests only.
//
// # How two executors answer from one graph
//
// A document is made plain by graphql-js (plain.mjs): the same fields without fragments,
// directives, variables, defaults and repeats, each under an alias of its own. The engine
// answers the plain form, and graphql-js executes the document itself with resolvers that
// return the values of that answer, and throw its errors. So the data are koine's, while what
// is collected, merged, skipped, coerced and made null, the order of keys and the path of each
// error are graphql-js's. The engine's answer to the document has to be the same to the byte,
// and its errors have to have the same paths. Whether a document is valid is compared too, of
// documents that are, and of such with a few tokens changed.
//
// # Mutations
//
// A mutation is executed in one world. In its twin, in which the same has happened before, each
// root field of the plain form is an operation of its own, in the order in which graphql-js
// would execute them. graphql-js completes the document over the answers of these: a field has
// to see what those before it did, and nothing of those after it. Ids, secrets and positions are
// masked, and both worlds must have come to the same revision.
//
// # Subscriptions
//
// Of a subscription that begins in the past the first events are compared: each is the answer
// to the document, and the event of the plain form's subscription at the same place is what
// graphql-js completes it over.
//
// # The answers of before
//
// testdata/recorded.gz holds 2,000 operations with their answers by the executor that koine had
// before. TestRecorded executes them again; what may differ, and why, is in changed. After a
// change of the schema that breaks operations it is written anew, with the answers of the
// present executor:
//
//	go test ./graph/reference -run TestRecorded -update
//
// # Files
//
// document_test.go makes documents from a schema, value_test.go their values, and
// world_test.go the graph, channels and tasks that they are about. A document follows from
// its seed and the schema; -reference.seed repeats one.
package reference
