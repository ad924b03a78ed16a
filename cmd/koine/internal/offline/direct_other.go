//go:build !linux

package offline

import (
	"errors"
	"os"
)

// openDirect fails: the files of this system are written through the page cache.
func openDirect(string) (*os.File, error) { return nil, errors.ErrUnsupported }
