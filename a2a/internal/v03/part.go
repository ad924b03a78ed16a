package v03

import (
	"encoding/json"

	"koine/a2a/internal/base"
	"koine/internal/tasks"
	"koine/kg"
)

// part is a Part: of the kind text, file or data.
type part struct {
	Kind     string          `json:"kind"`
	Text     *string         `json:"text,omitempty"`
	File     *file           `json:"file,omitempty"`
	Data     json.RawMessage `json:"data,omitempty"`
	Metadata json.RawMessage `json:"metadata,omitempty"`
}

// file is the content of a file, or its address.
type file struct {
	Bytes    *string `json:"bytes,omitempty"`
	URI      *string `json:"uri,omitempty"`
	MimeType string  `json:"mimeType,omitempty"`
	Name     string  `json:"name,omitempty"`
}

func readPart(p *part) (tasks.Part, error) {
	out := tasks.Part{Metadata: base.NonNull(p.Metadata)}
	switch p.Kind {
	case "text":
		out.Text = p.Text
	case "data":
		out.Data = p.Data
	case "file":
		if p.File == nil {
			return out, base.Required("file")
		}
		out.Raw, out.URL, out.MediaType, out.Filename = p.File.Bytes, p.File.URI, p.File.MimeType, p.File.Name
	default:
		return out, kg.Errorf(kg.CodeInvalid, "kind must be text, file or data").At("kind")
	}
	return out, nil
}

func writePart(p *tasks.Part) part {
	switch {
	case p.Text != nil:
		return part{Kind: "text", Text: p.Text, Metadata: p.Metadata}
	case p.Data != nil:
		return part{Kind: "data", Data: p.Data, Metadata: p.Metadata}
	}
	return part{Kind: "file", File: &file{p.Raw, p.URL, p.MediaType, p.Filename}, Metadata: p.Metadata}
}
