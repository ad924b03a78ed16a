// Package base holds the types of the store's data model: terms, statements,
// patterns, assertions, changes, commits, revisions, views, principals and errors.
// Package kg gives the public ones its own names by aliases. Every other package of
// the store builds on base, and base builds on none of them.
//
// Its values are plain data. Functions have no side effects and may be called
// concurrently.
package base
