package kg

import (
	"context"
	"fmt"

	"github.com/hashicorp/raft-wal/types"
)

// Faults are what can be made to go wrong below a store.
type Faults struct {
	LogFiles        types.VFS    // stands in for the file system under the log
	LogSegmentBytes int          // size of the log's files, so that a test has several
	AfterAppend     func() error // called when a group is in the log and not yet in the index
}

// WithFaults gives the options with the faults in them.
func (o Options) WithFaults(f Faults) Options {
	o.logFiles, o.logSegmentBytes, o.afterAppend = f.LogFiles, f.LogSegmentBytes, f.AfterAppend
	return o
}

// IndexRows lists all keys and values of the index as readers see them. How far
// Badger is, under the prefix 0, is left out.
func (s *Store) IndexRows() ([]string, error) {
	p, err := s.pin(context.Background())
	if err != nil {
		return nil, err
	}
	defer s.unpin(p)
	kv := p.kv
	var rows []string
	for prefix := 1; prefix < 256; prefix++ {
		c := kv.scan([]byte{byte(prefix)})
		for ; c.valid(); c.next() {
			err := c.value(func(v []byte) error {
				rows = append(rows, fmt.Sprintf("%x = %x", c.key(), v))
				return nil
			})
			if err != nil {
				c.close()
				return rows, err
			}
		}
		c.close()
	}
	return rows, nil
}

// SpoilMarker makes the index one of another layout.
func (s *Store) SpoilMarker() error {
	w := &indexTxn{db: s.db, at: uint64(s.head.Load().revision)}
	w.set(markerKey, []byte{99})
	return w.commit()
}
