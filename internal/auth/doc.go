// Package auth authenticates callers by koine's API keys and by the bearer tokens of an
// identity provider (package jwt below it), and ends their sessions when a credential
// becomes invalid.
//
//	keys := auth.NewKeys(store)              // create, list, rotate, revoke
//	table := auth.NewTable()                 // the keys in memory
//	gate := auth.NewGate(table, auth.Options{...})
//	principal, release, err := gate.Admit(ctx, credential, end)
//
// A key is ak_live_ or ak_test_, a lookup name of 12 characters, and a secret of 43
// characters. Only its SHA-256 is stored: the secret has 256 bits, so it cannot be
// guessed, and a slow hash would only cost the server time
// (docs/decisions/identity.md).
//
// Storage: a key is a record in kg.SystemGraph with the subject urn:koine:key:<name>
// and the properties in key.go.
//
// Guarantees:
//   - No secret is stored, logged, or part of an error.
//   - A revoked key is refused from the revision of its revocation on, and its sessions
//     end.
//   - Looking up a key takes no lock and does not read the store.
package auth
