package kg_test

import (
	"fmt"
	"testing"

	"koine/kg"
	"koine/kg/kgtest"
)

// TestMatchWhileItWrites proves that a statement which Match yields comes with its own
// assertions, regardless of later writes of the update.
func TestMatchWhileItWrites(t *testing.T) {
	for _, what := range []string{"remove what came", "remove an earlier one", "add in front", "remove what comes"} {
		t.Run(what, func(t *testing.T) {
			s := kgtest.Disk(t, kg.Options{})
			q := func(i int) kg.Quad {
				return kg.Quad{Subject: kg.IRI("urn:s"), Predicate: kg.IRI("urn:p"), Object: kg.Integer(int64(i))}
			}
			_, err := s.Update(within(t), kg.Meta{Principal: tester}, func(tx *kg.Tx) error {
				for i := 100; i < 120; i++ {
					if err := tx.Apply(kg.Patch{Op: kg.Add, Quad: q(i), Certainty: float64(i) / 1000, HasCertainty: true}); err != nil {
						return err
					}
				}
				n := 0
				for st, err := range tx.Match(kg.Pattern{Subject: kg.IRI("urn:s")}) {
					if err != nil {
						return err
					}
					var v int
					fmt.Sscan(st.Quad.Object.Value(), &v)
					if len(st.Assertions) != 1 || v >= 100 && st.Assertions[0].Certainty != float64(v)/1000 {
						t.Errorf("%v has %+v", st.Quad.Object, st.Assertions)
					}
					switch what {
					case "add in front":
						err = tx.Apply(kg.Patch{Op: kg.Add, Quad: q(n), Certainty: 0.9, HasCertainty: true})
					case "remove an earlier one":
						if n == 5 {
							err = tx.Apply(kg.Patch{Op: kg.Remove, Quad: q(100)})
						}
					case "remove what came":
						err = tx.Apply(kg.Patch{Op: kg.Remove, Quad: q(v)})
					case "remove what comes":
						if n == 5 {
							for i := 106; i < 120 && err == nil; i++ {
								err = tx.Apply(kg.Patch{Op: kg.Remove, Quad: q(i)})
							}
						}
					}
					if err != nil {
						return err
					}
					n++
				}
				if n < 5 {
					t.Errorf("%d came", n)
				}
				return nil
			})
			if err != nil {
				t.Errorf("%.600v", err)
			}
		})
	}
}
