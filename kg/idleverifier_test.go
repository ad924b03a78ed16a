package kg_test

import (
	"context"
	"sync/atomic"
	"testing"

	"koine/kg"
	"koine/kg/kgtest"
)

// pausing is a verifier that is idle at times. Its verdicts depend on a subject.
type pausing struct {
	idle atomic.Bool
	look func()
}

func (v *pausing) Idle() bool { return v.idle.Load() }

func (v *pausing) Verify(context.Context, kg.Judgement) (kg.Verdict, error) {
	v.look()
	return kg.Verdict{Depends: []kg.Dependency{{Node: kg.IRI("urn:premise")}}}, nil
}

// TestChangesWhileNobodyJudges proves that a verdict is made again if a dependency of it was
// changed by a commit that nobody judged, because the verifier was idle for a moment.
func TestChangesWhileNobodyJudges(t *testing.T) {
	var s *kgtest.Store
	v := &pausing{}
	looks := 0
	v.look = func() {
		if looks++; looks > 1 {
			return
		}
		v.idle.Store(true)
		if err := addOne(s.Store, within(t), stating("urn:premise", "changed")); err != nil {
			t.Error(err)
		}
		v.idle.Store(false)
	}
	s = kgtest.Disk(t, kg.Options{Governor: kg.Governor{Verifier: v}})
	if err := addOne(s.Store, within(t), stating("urn:conclusion", "drawn")); err != nil {
		t.Fatal(err)
	}
	if looks != 2 {
		t.Errorf("judged %d times, want 2", looks)
	}
}
