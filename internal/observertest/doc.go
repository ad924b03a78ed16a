// Package observertest compares what the observers of commits hold in memory with what a process that begins
// on the same log makes of it. An observer whose state is not derived from commits alone differs: after a
// restart, or at another node that follows the log, it would decide otherwise.
//
// A fixture calls AtEnd once, so that the history of each of its tests is compared.
package observertest
