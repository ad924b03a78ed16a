package kg_test

import (
	"errors"
	"testing"

	"github.com/dgraph-io/badger/v4/y"
)

// A throttle ends with an error for any number of concurrent failures: Badger's own waits
// for a reader of the errors beyond the buffer of its channel.
func TestThrottleOfManyErrors(t *testing.T) {
	const workers = 4
	failed := errors.New("no space")
	ended := make(chan error, 1)
	go func() {
		for range 100 { // Do takes a place or an error, at random
			throttle := y.NewThrottle(workers)
			for range 3 * workers {
				if err := throttle.Do(); err == nil {
					throttle.Done(failed)
				}
			}
			if err := throttle.Finish(); !errors.Is(err, failed) {
				ended <- err
				return
			}
		}
		ended <- failed
	}()
	select {
	case err := <-ended:
		if !errors.Is(err, failed) {
			t.Errorf("Finish: %v, want %v", err, failed)
		}
	case <-within(t).Done():
		t.Fatal("a worker waits for a reader of its error")
	}
}
