package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"koine/client"
	"koine/internal/rdf"
	"koine/kg"
)

// upload loads the files through a server.
func (c *loadCommand) upload(ctx context.Context, t terminal, sources []*source) error {
	registry, err := c.registry()
	if err != nil {
		return err
	}
	if len(c.Prefix) > 0 {
		t.sayf("--prefix is for --graph here and is not kept: a server's own are registered with koine serve --prefix")
	}
	query := url.Values{}
	if c.Graph != "" {
		query.Set("graph", expand(registry, c.Graph))
	}
	if c.ContinueOnError {
		query.Set("continueOnError", "true")
	}
	server, err := c.server().openForLong(ctx)
	if err != nil {
		return err
	}
	for _, s := range sources {
		query.Set("justification", justification(c.Why, s.name))
		if err := c.send(ctx, t, server, s, query); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

// expand writes a prefix of the command line out; the server knows its own.
func expand(registry *kg.Prefixes, text string) string {
	if iri, err := registry.Resource(text); err == nil {
		return iri.Name()
	}
	return text
}

func (c *loadCommand) send(ctx context.Context, t terminal, server *client.Client, s *source, query url.Values) error {
	raw, err := s.raw(t, "sending "+s.name)
	if err != nil {
		return err
	}
	in := bufio.NewReader(raw)
	header := http.Header{"Content-Type": {s.format.MediaType()}}
	if magic, err := in.Peek(2); err == nil && string(magic) == "\x1f\x8b" {
		header.Set("Content-Encoding", "gzip")
	}
	began := time.Now()
	response, err := server.Do(ctx, http.MethodPost, "/data?"+query.Encode(), header, in)
	s.progress.done()
	if err != nil {
		return err
	}
	defer response.Body.Close()
	var report struct {
		Quads, Statements, Rejected uint64
		Revision                    kg.Revision
		Errors                      []string
	}
	if err := json.NewDecoder(io.LimitReader(response.Body, maxAnswerBytes)).Decode(&report); err != nil {
		return fmt.Errorf("the server's answer: %w", err)
	}
	for _, e := range report.Errors {
		t.sayf("skipped: %s", e)
	}
	sayLoaded(t, s.name, rdf.Summary{Quads: report.Quads, Rejected: report.Rejected}, report.Statements, report.Revision, time.Since(began))
	return nil
}
