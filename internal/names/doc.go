// Package names checks the IRIs of updates: each must begin with a URI scheme that the
// store knows, and not with an unregistered prefix. It also registers prefixes and
// schemes, counts unknown names in loaded documents, and gives hints about likely
// typing errors in predicates, classes and objects.
//
// A Judge checks names before an update is queued. It reads with the rights of its
// caller only, so neither an error nor a hint reveals the content of other graphs.
// Removals are not checked, and neither is a name that the store already has: data with
// a name that became unknown can still be corrected and removed.
package names
