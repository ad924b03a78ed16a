// Package kgtest is the conformance suite of the quad store: what every store
// that calls itself one must do, as tests over a Factory.
//
// Three parts carry it. The Model is the store's whole meaning written with
// plain maps: what an update changes, what a view shows, what a watcher is
// told. The random tests do the same to a store and to a Model and compare.
// The checkers (Ordered, Unique, Gapless, Atomic, Resumable, Filtered) each
// hold one promise of a watch against a recorded History; each has a test of
// its own which shows that it notices when the promise is broken. Around them
// stand groups of tests for what a small vocabulary does not reach: terms of
// every kind, bounds, access, verification, overload, closing.
//
// A random run prints its seed. Do it again with -kg.seed=N; make it longer
// with -kg.steps and -kg.runs.
package kgtest
