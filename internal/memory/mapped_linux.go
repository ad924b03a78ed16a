package memory

import (
	"os"
	"strconv"
	"strings"
)

// mappedBytes returns how much of mapped files this process has in memory, 0 if it is unknown.
func mappedBytes() int64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text)) // size, resident, shared, …
	if len(fields) < 3 {
		return 0
	}
	pages, err := strconv.ParseInt(fields[2], 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}
