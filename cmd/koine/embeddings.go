package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"koine/cmd/koine/internal/cli"
	"koine/internal/embedding"
	"koine/internal/httpd"
	"koine/internal/search"
	"koine/kg"
)

// embeddingFlags configure the endpoint that makes vectors of texts.
type embeddingFlags struct {
	EmbeddingsURL     string   `help:"Send texts to this OpenAI-compatible endpoint, which makes the vectors by which they are found; requires --search on. Nothing is sent without it." placeholder:"URL" name:"embeddings-url"`
	EmbeddingsModel   string   `help:"Model of the embeddings endpoint." placeholder:"NAME"`
	EmbeddingsKeyFile string   `help:"File with the key of the embeddings endpoint." placeholder:"FILE" type:"path"`
	EmbeddingsGraphs  []string `help:"Graphs whose texts may be sent to the embeddings endpoint: IRIs, beginnings of IRIs with a * at the end, default for the default graph, messages for the messages of all channels (required with --embeddings-url)." placeholder:"GRAPH"`
	EmbeddingsDaily   int      `help:"How many texts may be sent to the embeddings endpoint on a day, in UTC. The others wait." default:"100000" placeholder:"N"`
}

// maxKeyBytes bounds the file of a key.
const maxKeyBytes = 8 << 10

// openMaker opens the vectors that an endpoint makes, nil if none is configured. made is told of
// statements that have vectors.
func (f embeddingFlags) openMaker(log *slog.Logger, store *kg.Store, data string, made func(context.Context, []kg.Quad) error) (*embedding.Maker, error) {
	if f.EmbeddingsURL == "" {
		if f.EmbeddingsModel != "" || f.EmbeddingsKeyFile != "" || f.EmbeddingsGraphs != nil {
			return nil, cli.Usagef("--embeddings-model, --embeddings-key-file and --embeddings-graphs require --embeddings-url")
		}
		return nil, nil
	}
	if f.EmbeddingsDaily < 1 {
		return nil, cli.Usagef("--embeddings-daily is %d; it must be at least 1", f.EmbeddingsDaily)
	}
	graphs, err := embedding.ParseGraphs(f.EmbeddingsGraphs)
	if err != nil {
		return nil, cli.Usagef("--embeddings-graphs: %w", err)
	}
	endpoint := embedding.Endpoint{URL: f.EmbeddingsURL, Model: f.EmbeddingsModel}
	if f.EmbeddingsKeyFile != "" {
		if endpoint.Key, err = readKey(f.EmbeddingsKeyFile); err != nil {
			return nil, fmt.Errorf("--embeddings-key-file: %w", err)
		}
	}
	if err := endpoint.Check(); err != nil {
		return nil, cli.Usagef("--embeddings-url, --embeddings-model: %w", err)
	}
	return embedding.Open(store, embedding.Options{
		Endpoint: endpoint, Dir: embedding.Directory(data), Graphs: graphs, Daily: f.EmbeddingsDaily,
		TextOf: search.TextOf, Made: made, Logger: log,
	})
}

// readKey reads the key in a file. Errors do not show it.
func readKey(path string) (string, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	key := strings.TrimSpace(string(content))
	if key == "" || len(content) > maxKeyBytes || strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("%s has no key: one line of at most %d printable characters", path, maxKeyBytes)
	}
	return key, nil
}

// attachMade returns the function that attaches the made vectors to backups. m may be nil.
func attachMade(log *slog.Logger, m *embedding.Maker, data string) func(kg.AttachFile) error {
	return func(attach kg.AttachFile) error {
		if m != nil {
			if err := m.Save(); err != nil {
				log.Warn("made vectors are not saved; the backup has those of the last save", "error", err)
			}
		}
		return embedding.AttachMade(data, log, attach)
	}
}

// embeddingsState returns the counts of a maker for the server's metrics, nil without one.
func embeddingsState(m *embedding.Maker) func() httpd.Embeddings {
	if m == nil {
		return nil
	}
	return func() httpd.Embeddings { return httpd.Embeddings(m.Stats()) }
}
