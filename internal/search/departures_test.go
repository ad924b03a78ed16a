package search

import (
	"testing"

	"koine/internal/textindex"
	"koine/kg"
)

// Departures are known from a revision on, at the bound of what is remembered and past it.
func TestDeparturesAreBounded(t *testing.T) {
	d := &departures{}
	d.forget(4)
	subject := func(n int) textindex.Subject { return textindex.Subject{Order: uint64(n % 1000)} }
	for n := range MaxDepartures {
		d.add(kg.Revision(5+n), subject(n))
	}
	last := kg.Revision(4 + MaxDepartures)
	if list, known := d.after(4); !known || len(list) != 1000 {
		t.Errorf("at the bound: %d subjects, known: %t", len(list), known)
	}
	if _, known := d.after(3); known {
		t.Error("departures from before the first revision are known")
	}
	if list, known := d.after(last); !known || len(list) != 0 {
		t.Errorf("after the last revision: %d subjects, known: %t", len(list), known)
	}
	if lost, known := d.hasLost(subject(MaxDepartures-1), last-1); !lost || !known {
		t.Errorf("the last subject: lost %t, known %t", lost, known)
	}
	d.add(last+1, subject(7))
	if _, known := d.after(4); known {
		t.Error("past the bound, the oldest departures are known")
	}
	if list, known := d.after(last - 2); !known || len(list) != 3 {
		t.Errorf("past the bound, the newest departures are %v, known: %t", list, known)
	}
	if lost, known := d.hasLost(subject(7), last); !lost || !known {
		t.Errorf("the newest subject: lost %t, known %t", lost, known)
	}
}
