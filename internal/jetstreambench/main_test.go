package jetstreambench

import (
	"os"
	"testing"

	"koine/internal/garbage"
)

func TestMain(m *testing.M) {
	garbage.Allow()
	if dir := os.Getenv(storeVariable); dir != "" {
		serveJetStream(dir)
	}
	os.Exit(m.Run())
}
