//go:build !linux

package offline

import (
	"errors"
	"os"
)

// setDirect fails: the files of this system are written through the page cache.
func setDirect(*os.File, bool) error { return errors.ErrUnsupported }
