package main

import (
	"context"
	"log/slog"
	"sync"

	"koine/cmd/koine/internal/cli"
	"koine/internal/garbage"
	"koine/internal/memory"
	"koine/internal/search"
	"koine/kg"
)

// memoryFlag is the memory of a server.
type memoryFlag struct {
	Memory *memory.Size `help:"Target for the resident memory of the server: caches, newest keys, garbage and limits get their shares of it (docs/operations.md). Bodies and answers that --received-mib and --result-mib allow may go beyond (default: three quarters of the limit of the control group; without a limit 384M)." placeholder:"SIZE"`
}

// shares divides the memory.
func (f memoryFlag) shares() (memory.Shares, error) {
	if f.Memory == nil {
		return memory.Divide(memory.Available()), nil
	}
	if *f.Memory < memory.Min || *f.Memory > memory.Max {
		return memory.Shares{}, cli.Usagef("--memory must be between %s and %s", memory.Size(memory.Min), memory.Size(memory.Max))
	}
	return memory.Divide(int64(*f.Memory)), nil
}

// keepStoreWithin sets the options of the store that take memory.
func keepStoreWithin(s memory.Shares, o *kg.Options) {
	o.MemTableBytes, o.MemTables, o.TableBytes = s.Memtable, s.Memtables, s.Table
	o.BlockCacheBytes, o.IndexBytes, o.RunCacheBytes = s.Blocks, s.Indexes, s.Runs
	o.TermCache, o.RingBytes = s.Terms, int(s.Commits)
}

// watchMemory keeps the process within its memory until stop is called.
func watchMemory(ctx context.Context, log *slog.Logger, s memory.Shares, store *kg.Store, texts *search.Service) (stop func()) {
	log.Info("memory", "total", memory.Size(s.Total).String(), "blocks", s.Blocks, "memtables", s.Memtable*int64(1+s.Memtables), "commits", s.Commits, "heap", s.Heap)
	if limit, is := memory.GroupLimit(); is {
		log.Warn("the control group has less memory than a server needs: the system may end the process", "limit", limit.String(), "needs", memory.Size(memory.Min/3*4).String())
	}
	garbage.Limit(s.Heap)
	ctx, cancel := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() {
		memory.Watch(ctx, s, func() {
			store.Maintenance().ReleasePages()
			if texts != nil {
				texts.ReleasePages()
			}
		}, store.Maintenance().ReleaseCaches)
	})
	return func() { cancel(); watch.Wait() }
}
