// Package names judges the IRIs that are written: whether each begins with a URI scheme
// that the store knows, and not with a prefix that nobody registered. It registers
// prefixes and schemes, counts what a loaded document has of others, and hints at slips
// in predicates, classes and objects.
//
// A Judge refuses names before an update is queued; it reads what its caller may read
// and nothing else, so that neither a refusal nor a hint tells what is in other graphs.
// Removals are never judged, and neither is a name that the store has already: what was
// written before a name became unknown can be corrected and taken away.
package names
