package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"

	"koine/client"
	"koine/internal/names"
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
		t.sayf("--prefix is for --graph here and is not kept: a server's own are registered with koine prefix add")
	}
	query := url.Values{"graph": {"default"}}
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
		if c.KeepPrefixes {
			if err := c.registerDeclared(ctx, t, s); err != nil {
				return err
			}
		}
		query.Set("justification", justification(c.Why, s.name))
		if err := c.send(ctx, t, server, s, query); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

// registerDeclared registers the prefixes of a file with the server.
func (c *loadCommand) registerDeclared(ctx context.Context, t terminal, s *source) error {
	declared := map[string]string{}
	o := rdf.Options{Name: s.name, ContinueOnError: c.ContinueOnError, Prefix: func(name, namespace string) { declared[name] = namespace }}
	if _, err := s.survey(ctx, t, o, nil); err != nil || len(declared) == 0 {
		return err
	}
	server, err := c.server().open(ctx)
	if err != nil {
		return err
	}
	var answer struct {
		Vocabulary struct{ Prefixes []kg.Prefix }
	}
	if err := server.GraphQL(ctx, `{ vocabulary { prefixes { name namespace } } }`, nil, &answer); err != nil {
		return err
	}
	kept := map[string]string{}
	for _, p := range answer.Vocabulary.Prefixes {
		kept[p.Name] = p.Namespace
	}
	keepDeclared(t, s.name, declared, kept, func(prefixes map[string]string) error {
		for _, name := range slices.Sorted(maps.Keys(prefixes)) {
			if err := registerOn(ctx, server, name, prefixes[name], false); err != nil {
				return err
			}
		}
		return nil
	})
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
		UnknownNames                []names.Unknown
	}
	if err := json.NewDecoder(io.LimitReader(response.Body, maxAnswerBytes)).Decode(&report); err != nil {
		return fmt.Errorf("the server's answer: %w", err)
	}
	for _, e := range report.Errors {
		t.sayf("skipped: %s", e)
	}
	sayLoaded(t, s.name, rdf.Summary{Quads: report.Quads, Rejected: report.Rejected}, report.Statements, report.Revision, time.Since(began))
	sayUnknown(t, s.name, report.UnknownNames)
	return nil
}
