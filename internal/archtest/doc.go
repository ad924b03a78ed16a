// Package archtest holds the import law: which package of koine may import
// which, and why not. It has no code but its test.
package archtest
