package main

import (
	"context"
	"log/slog"

	"koine/internal/httpd"
	"koine/internal/search"
	"koine/kg"
)

// searchFlags configure search by words.
type searchFlags struct {
	Search string `help:"Keep an index of texts for search by words: on or off. The index is in the data directory and is built again if it is missing." enum:"on,off" default:"off" placeholder:"on|off"`
}

// openSearch opens the search of a store, nil if it is off. stop ends it.
func (f searchFlags) openSearch(ctx context.Context, log *slog.Logger, store *kg.Store, data string) (s *search.Service, stop func(), err error) {
	if f.Search == "off" {
		return nil, func() {}, nil
	}
	s, err = search.Open(store, search.Options{Dir: search.Directory(data), Logger: log})
	if err != nil {
		return nil, nil, err
	}
	s.Start()
	return s, func() {
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
