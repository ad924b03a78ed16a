// Package datadir opens and locks a data directory, and reads and writes its small
// files: the format, the secret, the oldest readable revision, and the exchange of one
// store for another. Each file is replaced so that a crash leaves the old or the new one.
package datadir
