//go:build !linux

package wal

import "github.com/hashicorp/raft-wal/types"

// dataSync is Sync on systems without fdatasync.
func dataSync(f types.WritableFile) error { return f.Sync() }
