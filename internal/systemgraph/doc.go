// Package systemgraph keeps koine's own records in memory: policies, shapes, proposals,
// profiles and other statements in the system graphs. A record is the set of all
// statements about one subject; its properties are those of koine's vocabulary.
//
// A Mirror follows a set of patterns: Load reads the current statements when the store
// opens, and Follow applies each later commit (kg.Governor.OnSystemChange). So a
// decision made from the mirrored state is never older than the state that a reader
// sees. A Table is a Mirror with one Record for each subject. Write and WriteOver write
// records within an update.
package systemgraph
