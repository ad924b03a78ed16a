package cli

import (
	"io"
	"os"
	"strings"

	"koine/internal/rdf"
)

// JSONLDFlags configure the reading of JSON-LD documents.
type JSONLDFlags struct {
	JSONLDContext  []string `help:"File to use for a remote JSON-LD context, which is never fetched; may be repeated." name:"jsonld-context" sep:"none" placeholder:"URL=FILE"`
	JSONLDMaxBytes int64    `help:"Maximum memory for a JSON-LD document that is not in streaming order (in each object @context first, then @type and @id, then the rest). Documents in streaming order may have any size." name:"jsonld-max-bytes" default:"67108864" placeholder:"BYTES"`
}

// JSONLDOptions checks the flags and reads the context files.
func (f *JSONLDFlags) JSONLDOptions() (rdf.JSONLDOptions, error) {
	if err := CheckRange("jsonld-max-bytes", f.JSONLDMaxBytes, 1, rdf.MaxJSONLDMaxBytes); err != nil {
		return rdf.JSONLDOptions{}, err
	}
	contexts := &rdf.JSONLDContexts{}
	for _, arg := range f.JSONLDContext {
		i := strings.LastIndexByte(arg, '=')
		if i <= 0 || i == len(arg)-1 {
			return rdf.JSONLDOptions{}, Usagef("--jsonld-context %s: must be URL=FILE", arg)
		}
		if err := addContext(contexts, arg[:i], arg[i+1:]); err != nil {
			return rdf.JSONLDOptions{}, Usagef("--jsonld-context %s: %w", arg, err)
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
