// Package v1 reads and writes base A2A 1.0 as JSON (A2A 1.0, section 4 and the
// JSON-RPC binding of section 9).
package v1
