package jetstreambench

import (
	"os"
	"testing"

	"koine/internal/garbage"
)

func TestMain(m *testing.M) {
	garbage.Limit(4 << 30) // not a limit: both sides are in this process
	if dir := os.Getenv(storeVariable); dir != "" {
		serveJetStream(dir)
	}
	os.Exit(m.Run())
}
