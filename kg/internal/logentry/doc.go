// Package logentry encodes a commit as the payload of a log entry, and decodes it. Older
// versions of the encoding are read for as long as a supported data directory has them.
package logentry
