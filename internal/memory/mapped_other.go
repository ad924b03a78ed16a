//go:build !linux

package memory

// mappedBytes is unknown on this system.
func mappedBytes() int64 { return 0 }
