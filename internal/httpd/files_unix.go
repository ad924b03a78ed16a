//go:build unix

package httpd

import (
	"os"
	"syscall"
)

// maxFiles returns how many more files the process may open.
func maxFiles() (more int, known bool) {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return 0, false
	}
	used := usualFiles
	if open, err := os.ReadDir("/dev/fd"); err == nil {
		used = len(open)
	}
	return int(min(uint64(limit.Cur), 1<<30)) - used, true
}
