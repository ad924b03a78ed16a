package channel_test

import (
	"fmt"
	"iter"
	"runtime"
	"testing"

	"koine/channels/channel"
	"koine/channels/internal/vocab"
	"koine/kg"
)

// A record with ten times the members takes about ten times the memory to read: every
// join reads the record of its channel.
func TestReadRecordIsLinear(t *testing.T) {
	const id = channel.ID("0197a1b2-0000-7000-8000-000000000001")
	read := func(members int) uint64 {
		match := func(kg.Pattern) iter.Seq2[kg.Statement, error] {
			return func(yield func(kg.Statement, error) bool) {
				stated := []kg.Assertion{{}}
				for i := range members {
					member := channel.MemberPatterns(kg.AgentID(fmt.Sprintf("agent://a%04d", i)))[0]
					if !yield(kg.Statement{Quad: kg.Quad{Subject: id.Entity(), Predicate: member.Predicate, Object: member.Object}, Assertions: stated}, nil) {
						return
					}
				}
				yield(kg.Statement{Quad: kg.Quad{Subject: id.Entity(), Predicate: vocab.Version, Object: kg.Integer(1)}, Assertions: stated}, nil)
			}
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if c, err := channel.ReadRecord(match, id); err != nil || len(c.Members) != members {
			t.Fatal(c, err)
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	few, many := read(100), read(1000)
	if many > 20*few {
		t.Errorf("1,000 members take %d bytes, and 100 take %d", many, few)
	}
}
