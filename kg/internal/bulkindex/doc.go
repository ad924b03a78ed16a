// Package bulkindex writes the index of a bulk load: it gathers statements and terms in
// bounded memory, sorts them in runs on disk, and adds them to Badger as whole tables in
// one step.
package bulkindex
