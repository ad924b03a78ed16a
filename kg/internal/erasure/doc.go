// Package erasure takes statements out of the log's commits and out of a checkpoint, and
// counts what it took. It keeps revisions as they are; the caller writes the result under
// another epoch.
package erasure
