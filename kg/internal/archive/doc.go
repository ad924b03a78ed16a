// Package archive reads and writes the files that do not depend on an index: checkpoints and
// backups. VerifyBackup verifies a chain of backups while it reads, and Restore makes a
// data directory of one.
package archive
