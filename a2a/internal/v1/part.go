package v1

import (
	"encoding/json"

	"koine/a2a/internal/base"
	"koine/internal/tasks"
)

// part is a Part: one of text, raw, url and data.
type part struct {
	Text      *string         `json:"text,omitempty"`
	Raw       *string         `json:"raw,omitempty"`
	URL       *string         `json:"url,omitempty"`
	Data      json.RawMessage `json:"data,omitempty"`
	MediaType string          `json:"mediaType,omitempty"`
	Filename  string          `json:"filename,omitempty"`
	Metadata  json.RawMessage `json:"metadata,omitempty"`
}

func readPart(p *part) (tasks.Part, error) {
	return tasks.Part{
		Text: p.Text, Raw: p.Raw, URL: p.URL, Data: p.Data, MediaType: p.MediaType, Filename: p.Filename, Metadata: base.NonNull(p.Metadata),
	}, nil
}

func writePart(p *tasks.Part) part {
	return part{Text: p.Text, Raw: p.Raw, URL: p.URL, Data: p.Data, MediaType: p.MediaType, Filename: p.Filename, Metadata: p.Metadata}
}
