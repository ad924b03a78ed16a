// Package auth finds out whose a credential is, and for how long it is good:
// koine's own API keys, and the bearer tokens of an identity provider (package
// jwt below it).
//
//	keys := auth.NewKeys(store)              // create, list, rotate, revoke
//	table := auth.NewTable()                 // which keys are good, in memory
//	gate := auth.NewGate(table, auth.Options{...})
//	who, release, err := gate.Admit(ctx, credential, end)
//
// A key is ak_live_ or ak_test_, a name of 12 characters by which it is looked
// up, and 43 characters of secret. Only its SHA-256 is stored: the secret has 256
// bits, so nobody finds it by trying, and a slow hash would be work for us alone
// (docs/decisions/identity.md).
//
// Storage: a key is a record in kg.SystemGraph, subject urn:koine:key:<name>,
// with the properties listed in record.go.
//
// Promises:
//   - No secret is stored, logged, or part of an error.
//   - A key that was revoked is refused from the revision on that says so, and
//     what was admitted with it ends.
//   - Looking a key up takes no lock and reads no store.
package auth
