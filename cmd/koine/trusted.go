package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"

	"koine/graph"
)

// trustedFlags select the GraphQL documents that may be executed.
type trustedFlags struct {
	TrustedDocuments     string `help:"Manifest of GraphQL documents that requests may name by id or SHA-256: a JSON object from id to text, or the operations manifest of Apollo's tools." placeholder:"FILE" type:"path"`
	OnlyTrustedDocuments bool   `help:"Execute only the documents of --trusted-documents, on /graphql and in knowledge/query and knowledge/subscribe."`
}

// trustedDocuments reads the manifest; nil without one.
func (f trustedFlags) trustedDocuments() (*graph.TrustedDocuments, error) {
	if f.TrustedDocuments == "" {
		if f.OnlyTrustedDocuments {
			return nil, usageError{errors.New("--only-trusted-documents requires --trusted-documents FILE")}
		}
		return nil, nil
	}
	file, err := os.Open(f.TrustedDocuments)
	if err != nil {
		return nil, usageError{fmt.Errorf("--trusted-documents: %w", err)}
	}
	defer file.Close()
	documents, err := graph.ReadTrustedDocuments(file)
	if err != nil {
		return nil, usageError{fmt.Errorf("--trusted-documents: %s: %w", f.TrustedDocuments, err)}
	}
	return documents, nil
}

// reportedDocuments bounds the invalid documents that are logged one by one.
const reportedDocuments = 10

// reportDocuments logs the invalid trusted documents. They do not prevent the start, since
// clients of the valid ones still work.
func reportDocuments(log *slog.Logger, engine *graph.Engine, documents *graph.TrustedDocuments) {
	if documents == nil {
		return
	}
	invalid := engine.InvalidDocuments()
	for i, d := range invalid {
		if i == reportedDocuments {
			break
		}
		log.Warn("a trusted document is invalid", "id", d.ID, "err", d.Errors[0].Message)
	}
	log.Info("trusted documents", "documents", documents.Len(), "invalid ids", len(invalid))
}
