package kg

import (
	"math"

	"koine/kg/internal/keys"
)

// LastChange is the revision that last changed a statement of the graph, as of the
// snapshot's newest revision; 0 when none did, and when the view does not show the
// graph. Statements that are hidden from the principal count: see HidesStatements. It
// looks at one key for each subject that the graph has or had, and not at the
// statements, and keeps the pace of a scan. LastChanges does so once for many calls.
func (s *Snapshot) LastChange(graph Term) (last Revision, err error) {
	id, known, err := s.dict.id(graph)
	if !known || err != nil {
		return 0, err
	}
	if shown, err := s.admits(id); !shown || err != nil {
		return 0, err
	}
	content, there := s.toIndex(id)
	if !there {
		return 0, nil
	}
	last, _, err = s.scanLastChange(content, math.MaxInt)
	return last, err
}

// scanLastChange is LastChange of a graph's content with up to so many subjects. It reports
// false where there are more.
func (s *Snapshot) scanLastChange(content ID, most int) (last Revision, ended bool, err error) {
	last = s.generations.floor(content)
	cursor := s.kv.scan(append(keys.LastPrefix(), content[:]...))
	defer cursor.close()
	for steps := 1; cursor.valid(); cursor.next() {
		if most--; most < 0 {
			return 0, false, nil
		}
		if steps++; steps%checkEvery == 0 {
			if err := s.pace(); err != nil {
				return 0, false, err
			}
		}
		err := cursor.value(func(value []byte) error {
			changed, err := parseLastChange(value)
			last = max(last, changed)
			return err
		})
		if err != nil {
			return 0, false, err
		}
	}
	return last, true, nil
}

// HidesStatements tells whether single statements of graphs that the view shows may be
// hidden from its principal (Hider).
func (s *Snapshot) HidesStatements() bool { return s.hides != nil }

// Doubts are those that decide what the snapshot leaves out (View.Doubted).
func (s *Snapshot) Doubts() Doubts { return s.view.doubts }
