package jetstreambench

import (
	"os"
	"testing"

	"koine/internal/garbage"
)

func TestMain(m *testing.M) {
	garbage.Allow()
	os.Exit(m.Run())
}
