package kg_test

import (
	"testing"

	"koine/kg"
	"koine/kg/kgtest"
)

func TestStoreConformance(t *testing.T) { kgtest.Run(t, disk) }

// disk makes stores in which graphs of more than a few statements are replaced as a whole,
// in several commits.
func disk(t testing.TB, o kg.Options) *kgtest.Store {
	return kgtest.Disk(t, o.WithFaults(kg.Faults{WholeFrom: 4, WholeCommit: 3}))
}
