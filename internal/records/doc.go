// Package records keeps in memory what koine itself has written down about
// things of one kind, key by key and agent by agent, as it stands in one of its
// own graphs. A record is all statements about one subject; its properties are
// those of koine's vocabulary.
//
// A Mirror is how all of koine that is made of such statements is kept in memory,
// policies, shapes and proposals too: Load reads what is there when the store
// opens, Follow takes each commit after it (kg.Options.OnSystemChange). So what is
// decided from it is never older than what any reader sees. A Table is a Mirror
// with a record for each subject.
package records
