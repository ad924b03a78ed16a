// Package kgtest is the conformance suite of the quad store: tests over a Factory that every
// implementation of the store must pass.
//
// It has three parts. Model is an executable specification of the store in plain maps: the
// effect of an update, the content of a view, the events of a watcher. The random tests apply
// the same operations to a store and a Model and compare. The checkers (Ordered, Unique,
// Gapless, Atomic, Resumable, Filtered) each check one promise of a watch on a recorded
// History; each has a test which shows that it detects a violation. Further tests cover topics
// beyond the random vocabulary: terms of every kind, limits, access, verification, overload,
// closing.
//
// A random run prints its seed. Repeat it with -kg.seed=N; extend it with -kg.steps and
// -kg.runs.
package kgtest
