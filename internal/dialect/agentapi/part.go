package agentapi

import (
	"bytes"
	"encoding/json"
	"fmt"

	"koine/internal/plainjson"
	"koine/internal/tasks"
	"koine/kg"
)

// part is a MessagePart.
type part struct {
	Type     string          `json:"type"`
	Content  json.RawMessage `json:"content"`
	Metadata json.RawMessage `json:"metadata,omitempty"`
}

// The types of parts that came through A2A.
const (
	typeText = "text"
	typeData = "data"
	typeFile = "file"
)

// file is the content of a part of the type file.
type file struct {
	Bytes    *string `json:"bytes,omitempty"` // base64
	URI      *string `json:"uri,omitempty"`
	MimeType string  `json:"mimeType,omitempty"`
	Name     string  `json:"name,omitempty"`
}

// readParts decodes a message. A part of type text with a string becomes text; every
// other one becomes data with the name of its type.
func readParts(list []part) ([]tasks.Part, error) {
	out := make([]tasks.Part, 0, len(list))
	for i := range list {
		p, err := list[i].toPart()
		if err != nil {
			return nil, kg.AsError(err).At(fmt.Sprintf("message[%d]", i))
		}
		out = append(out, p)
	}
	return out, nil
}

func (p *part) toPart() (tasks.Part, error) {
	out := tasks.Part{Metadata: p.Metadata}
	if string(out.Metadata) == "null" {
		out.Metadata = nil
	}
	if p.Type == "" {
		return out, kg.Errorf(kg.CodeInvalid, "is required").At("type")
	}
	if p.Content == nil {
		return out, kg.Errorf(kg.CodeInvalid, "is required").At("content")
	}
	if text, ok := textOf(p.Content); ok && p.Type == typeText {
		out.Text = &text
		return out, nil
	}
	if f := fileOf(p.Content); f != nil && p.Type == typeFile {
		out.Raw, out.URL, out.MediaType, out.Filename = f.Bytes, f.URI, f.MimeType, f.Name
		return out, nil
	}
	out.Data = p.Content
	if p.Type != typeData {
		out.Type = p.Type
	}
	return out, nil
}

func textOf(raw json.RawMessage) (text string, ok bool) {
	return text, raw[0] == '"' && json.Unmarshal(raw, &text) == nil
}

// fileOf decodes the content of a file. It returns nil for other content, which is kept
// as data.
func fileOf(raw json.RawMessage) *file {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	f := new(file)
	if decoder.Decode(f) != nil || (f.Bytes == nil) == (f.URI == nil) {
		return nil
	}
	return f
}

func writeParts(list []tasks.Part) ([]part, error) {
	out := make([]part, 0, len(list))
	for i := range list {
		p, err := writePart(&list[i])
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

func writePart(p *tasks.Part) (out part, err error) {
	out.Metadata = p.Metadata
	switch {
	case p.Text != nil:
		out.Type = typeText
		out.Content, err = plainjson.Encode(*p.Text)
	case p.Data != nil:
		out.Type, out.Content = p.Type, p.Data
		if out.Type == "" {
			out.Type = typeData
		}
	default:
		out.Type = typeFile
		out.Content, err = plainjson.Encode(file{p.Raw, p.URL, p.MediaType, p.Filename})
	}
	return out, err
}
