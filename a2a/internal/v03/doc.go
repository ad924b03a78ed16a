// Package v03 reads and writes base A2A 0.3 as JSON (A2A 0.3, sections 6 and 7).
package v03
