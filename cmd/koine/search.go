package main

import (
	"context"
	"log/slog"

	"koine/cmd/koine/internal/cli"
	"koine/internal/embedding"
	"koine/internal/httpd"
	"koine/internal/search"
	"koine/kg"
)

// searchFlags configure search by words.
type searchFlags struct {
	Search        string `help:"Keep an index of texts for search by words: on or off. The index is in the data directory and is built again if it is missing." enum:"on,off" default:"on" placeholder:"on|off"`
	SearchHistory bool   `help:"Keep texts that were removed in the index too: searches with a view of the past find them. The index then grows with the history, and requires --history all."`
}

// checkHistory returns an error if texts were to be kept beyond the store's history.
func (f searchFlags) checkHistory(history historyTime) error {
	switch {
	case !f.SearchHistory:
		return nil
	case f.Search == "off":
		return cli.Usagef("--search-history requires --search on")
	case history != 0:
		return cli.Usagef("--search-history keeps the texts of all history, and requires --history all")
	}
	return nil
}

// openSearch opens the search of a store, nil if it is off, and the maker of its vectors, nil
// without one. stop ends both.
func (c *serveCommand) openSearch(ctx context.Context, log *slog.Logger, store *kg.Store) (s *search.Service, m *embedding.Maker, stop func(), err error) {
	if c.Search == "off" {
		if c.EmbeddingsURL != "" {
			return nil, nil, nil, cli.Usagef("--embeddings-url requires --search on")
		}
		return nil, nil, func() {}, nil
	}
	m, err = c.openMaker(log, store, c.Data, func(ctx context.Context, list []kg.Quad) error { return s.AddMade(ctx, list) })
	if err != nil {
		return nil, nil, nil, err
	}
	o := search.Options{Dir: search.Directory(c.Data), Logger: log, History: c.SearchHistory}
	if m != nil {
		o.Embedder = m
	}
	if s, err = search.Open(store, o); err != nil {
		return nil, nil, nil, err
	}
	s.Start()
	if m != nil {
		m.Start()
	}
	return s, m, func() {
		if m != nil {
			if err := m.Close(); err != nil {
				log.WarnContext(ctx, "made vectors are not saved; they are made again at the next start", "error", err)
			}
		}
		if err := s.Close(); err != nil {
			log.WarnContext(ctx, "text index is not saved; it is brought up at the next start", "error", err)
		}
	}, nil
}

// textIndexState returns the state of a search for the server's metrics, nil if it is off.
func textIndexState(s *search.Service) func() httpd.TextIndex {
	if s == nil {
		return nil
	}
	return func() httpd.TextIndex {
		p := s.Progress()
		return httpd.TextIndex{
			Building: p.Building, CatchingUp: p.CatchingUp, Done: p.Done, Total: p.Total,
			Revision: p.Revision, Behind: p.Behind, Texts: p.Texts, Segments: p.Segments, Bytes: p.Bytes,
		}
	}
}
