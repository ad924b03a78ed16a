// Package v03http reads and writes base A2A 0.3 as HTTP+JSON has it (A2A 0.3, section 3.2.3):
// as the JSON of its protocol buffers, which differs from the JSON of 0.3 over JSON-RPC.
package v03http
