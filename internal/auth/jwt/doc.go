// Package jwt verifies the bearer tokens of an identity provider: JSON Web Tokens (RFC
// 7519) signed with a key of a JSON Web Key Set, which is fetched and refreshed from a
// URL, or read from a file.
//
// Guarantees:
//   - A token is accepted only with a signature by a key of the set, with an algorithm
//     that is allowed and that the key is for. "none" is never allowed. Shared secrets
//     (HS256 …) are allowed only from a file, because a public key set would disclose
//     them.
//   - Issuer, audience and expiry are always verified.
//   - The set is fetched asynchronously and at a limited rate, regardless of the tokens
//     received. While the provider is unavailable, the last set is used.
//   - Errors do not contain the token.
package jwt
