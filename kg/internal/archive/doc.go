// Package archive reads and writes the files that outlive an index: checkpoints and
// backups. ReadBackup verifies a chain of backups while it reads, and Restore makes a
// data directory of one.
package archive
