//go:build !linux

package wal

import "github.com/hashicorp/raft-wal/types"

// dataSync is Sync where the system has nothing less.
func dataSync(f types.WritableFile) error { return f.Sync() }
