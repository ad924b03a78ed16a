package kg_test

import (
	"testing"

	"koine/kg/kgtest"
)

func TestStoreConformance(t *testing.T) { kgtest.Run(t, kgtest.Disk) }
