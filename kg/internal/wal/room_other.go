//go:build !linux

package wal

import "errors"

// allocate is not supported.
func allocate(interface{ Fd() uintptr }, int64, int64) error { return errors.ErrUnsupported }
