package a2a_test

import (
	"koine/a2a"
	"koine/kg"
)

func newQuerier(*kg.Store, *kg.Prefixes) a2a.Querier { return nil }
