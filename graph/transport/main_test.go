package transport_test

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// Nothing that the tests started may be left when they have ended.
func TestMain(m *testing.M) {
	code := m.Run()
	if left := leftGoroutines(); left != "" {
		fmt.Fprintf(os.Stderr, "goroutines are left:\n%s\n", left)
		code = 1
	}
	os.Exit(code)
}

// leftGoroutines are those of koine's own code that do not end soon, but for the
// tests' own.
func leftGoroutines() (left string) {
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); <-look.C {
		buf := make([]byte, 4<<20)
		left = ""
		for g := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
			if strings.Contains(g, "koine/") && !strings.Contains(g, "leftGoroutines") {
				left += g + "\n\n"
			}
		}
		if left == "" {
			return ""
		}
	}
	return left
}
