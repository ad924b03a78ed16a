package kg

import (
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

// IndexRows lists all keys and values of the index as readers see them.
func (s *Store) IndexRows() ([]string, error) {
	kv := newBadgerKV(s.db, s.head.Load().revision)
	defer kv.close()
	var rows []string
	for prefix := range 256 {
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
