package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"koine/internal/rdf"
)

// jsonldFlags configure the reading of JSON-LD documents.
type jsonldFlags struct {
	JSONLDContext  []string `help:"File to use for a remote JSON-LD context, which is never fetched; may be repeated." name:"jsonld-context" sep:"none" placeholder:"URL=FILE"`
	JSONLDMaxBytes int64    `help:"Maximum memory for a JSON-LD document that is not in streaming order (in each object @context first, then @type and @id, then the rest). Documents in streaming order may have any size." name:"jsonld-max-bytes" default:"67108864" placeholder:"BYTES"`
}

// jsonldOptions checks the flags and reads the context files.
func (f *jsonldFlags) jsonldOptions() (rdf.JSONLDOptions, error) {
	if f.JSONLDMaxBytes < 1 || f.JSONLDMaxBytes > rdf.MaxJSONLDMaxBytes {
		return rdf.JSONLDOptions{}, usageError{fmt.Errorf("--jsonld-max-bytes must be between 1 and %d", rdf.MaxJSONLDMaxBytes)}
	}
	contexts := &rdf.JSONLDContexts{}
	for _, arg := range f.JSONLDContext {
		i := strings.LastIndexByte(arg, '=')
		if i <= 0 || i == len(arg)-1 {
			return rdf.JSONLDOptions{}, usageError{fmt.Errorf("--jsonld-context %s: must be URL=FILE", arg)}
		}
		if err := addContext(contexts, arg[:i], arg[i+1:]); err != nil {
			return rdf.JSONLDOptions{}, usageError{fmt.Errorf("--jsonld-context %s: %w", arg, err)}
		}
	}
	return rdf.JSONLDOptions{MaxBytes: f.JSONLDMaxBytes, Contexts: contexts}, nil
}

func addContext(contexts *rdf.JSONLDContexts, iri, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, rdf.MaxContextBytes+1))
	if err != nil {
		return err
	}
	return contexts.Add(iri, text)
}

// serveJSONLDFlags adds the flag of a server, which reads several documents at a time.
type serveJSONLDFlags struct {
	jsonldFlags
	JSONLDHolders int `help:"Maximum number of JSON-LD documents read at a time that need more than 1 MiB of memory. Others wait." name:"jsonld-holders" default:"1" placeholder:"N"`
}

// jsonldOptions adds the bound on documents that are held in memory at a time.
func (f *serveJSONLDFlags) jsonldOptions() (rdf.JSONLDOptions, error) {
	if f.JSONLDHolders < 1 || f.JSONLDHolders > maxJSONLDHolders {
		return rdf.JSONLDOptions{}, usageError{fmt.Errorf("--jsonld-holders must be between 1 and %d", maxJSONLDHolders)}
	}
	o, err := f.jsonldFlags.jsonldOptions()
	o.Holders = rdf.NewJSONLDHolders(f.JSONLDHolders)
	return o, err
}

const maxJSONLDHolders = 64

// droppedEntries counts the entries of a JSON-LD document that stand for no statement.
type droppedEntries struct {
	entries uint64
	first   string
}

func (l *droppedEntries) recordDropped(e *rdf.SyntaxError) {
	if l.entries++; l.entries == 1 {
		l.first = e.Error()
	}
}

func (l *droppedEntries) printSummary(t terminal, file string) {
	if l.entries > 0 {
		t.sayf("%s: %s entries without a meaning were ignored, the first: %s", file, countText(l.entries), l.first)
	}
}
