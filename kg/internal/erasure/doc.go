// Package erasure takes statements out of the log's commits and out of a checkpoint, and
// counts the removed content. It keeps all revisions; the caller writes the result under
// another epoch.
package erasure
