package a2a

import (
	"testing"

	"koine/kg"
)

func testPrefixes(t testing.TB) *kg.Prefixes {
	t.Helper()
	p, err := kg.NewPrefixes(nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
