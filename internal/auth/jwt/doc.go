// Package jwt checks bearer tokens of an identity provider: JSON Web Tokens
// (RFC 7519), signed with a key of a JSON Web Key Set that is fetched from a URL
// and kept fresh, or read from a file.
//
// Promises:
//   - A token counts only with a signature by a key of the set, of an algorithm
//     that was allowed and that the key is for. "none" is never allowed, nor is a
//     shared secret (HS256 …) unless it stands in a file: a public key set would
//     give it to everybody.
//   - Issuer, audience and end of life are always checked.
//   - The set is fetched behind the requests and as seldom as said, whatever
//     tokens ask for. While a provider does not answer, the last set counts.
//   - Errors hold nothing of the token.
package jwt
