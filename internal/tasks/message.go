package tasks

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"mime"
	"slices"
	"strings"
	"unicode/utf8"

	"koine/internal/plainjson"
	"koine/internal/systemgraph"
	"koine/kg"
)

// validate returns an error for a message that is malformed or exceeds a limit.
func (m *Message) validate() error {
	if err := checkKey("messageId", m.ID); err != nil {
		return err
	}
	if err := checkParts("parts", m.Parts); err != nil {
		return err
	}
	if err := checkMetadata("metadata", m.Metadata); err != nil {
		return err
	}
	if len(m.References) > MaxReferences {
		return errTooMuch("referenceTaskIds", "a message refers to at most %d other tasks", MaxReferences)
	}
	for _, id := range m.References {
		if err := checkKey("referenceTaskIds", string(id)); err != nil {
			return err
		}
	}
	return checkExtensions(m.Extensions)
}

// CheckTypes returns an error if a part of the message has none of these media types;
// "text/*" stands for all of text. A part without a media type is accepted.
func (m *Message) CheckTypes(types ...string) error {
	for i := range m.Parts {
		mediaType := m.Parts[i].MediaType
		if mediaType == "" {
			continue
		}
		base, _, err := mime.ParseMediaType(mediaType)
		family, _, _ := strings.Cut(base, "/")
		if err != nil || !slices.Contains(types, base) && !slices.Contains(types, family+"/*") {
			return errContentType(fmt.Sprintf("parts[%d].mediaType", i), mediaType)
		}
	}
	return nil
}

func checkExtensions(list []string) error {
	if len(list) > MaxExtensions {
		return errTooMuch("extensions", "at most %d extensions", MaxExtensions)
	}
	for _, uri := range list {
		if err := checkKey("extensions", uri); err != nil {
			return err
		}
	}
	return nil
}

// checkKey bounds an id that a client chose.
func checkKey(field, key string) error { return checkText(field, key, MaxKeyBytes) }

func checkText(field, text string, limit int) error {
	switch {
	case len(text) > limit:
		return errTooMuch(field, "at most %d bytes", limit)
	case !utf8.ValidString(text):
		return kg.Errorf(kg.CodeInvalid, "the text is not valid UTF-8").At(field)
	}
	return nil
}

func checkMetadata(field string, raw json.RawMessage) error {
	switch {
	case len(raw) == 0:
		return nil
	case len(raw) > MaxMetadataBytes:
		return errTooMuch(field, "at most %d bytes of metadata", MaxMetadataBytes)
	case bytes.TrimSpace(raw)[0] != '{':
		return kg.Errorf(kg.CodeInvalid, "metadata must be a JSON object").At(field)
	}
	return nil
}

func checkParts(field string, parts []Part) error {
	switch {
	case len(parts) == 0:
		return kg.Errorf(kg.CodeInvalid, "at least one part is required").At(field)
	case len(parts) > MaxParts:
		return errTooMuch(field, "at most %d parts", MaxParts)
	}
	for i := range parts {
		p, at := &parts[i], fmt.Sprintf("%s[%d]", field, i)
		contents := 0
		for _, text := range []*string{p.Text, p.Raw, p.URL} {
			if text != nil {
				contents++
				if !utf8.ValidString(*text) {
					return kg.Errorf(kg.CodeInvalid, "the text is not valid UTF-8").At(at)
				}
			}
		}
		if p.Data != nil {
			contents++
		}
		if p.Raw != nil && !isBase64(*p.Raw) {
			return kg.Errorf(kg.CodeInvalid, "raw is not base64").At(at + ".raw")
		}
		if contents != 1 {
			return kg.Errorf(kg.CodeInvalid, "a part must have exactly one of text, raw, url and data").At(at)
		}
		for _, text := range []string{p.Type, p.MediaType, p.Filename} {
			if err := checkText(at, text, MaxTextBytes); err != nil {
				return err
			}
		}
		if err := checkMetadata(at+".metadata", p.Metadata); err != nil {
			return err
		}
	}
	if size := SizeOf(parts); size > MaxMessageBytes {
		return errTooMuch(field, "the content has %d bytes, more than the limit of %d for one message or chunk", size, MaxMessageBytes)
	}
	return nil
}

// isBase64 reports whether a text is base64 in the standard or the URL alphabet, with
// or without padding, as the JSON mapping of protocol buffers allows.
func isBase64(text string) bool {
	if strings.ContainsAny(text, "\r\n") { // the decoders would skip them
		return false
	}
	encoding := base64.StdEncoding
	if strings.ContainsAny(text, "-_") {
		encoding = base64.URLEncoding
	}
	if !strings.HasSuffix(text, "=") && len(text)%4 != 0 {
		encoding = encoding.WithPadding(base64.NoPadding)
	}
	_, err := encoding.DecodeString(text)
	return err == nil
}

// SizeOf returns the bytes of content of the parts.
func SizeOf(parts []Part) (size int) {
	for i := range parts {
		p := &parts[i]
		for _, text := range []*string{p.Text, p.Raw, p.URL} {
			if text != nil {
				size += len(*text)
			}
		}
		size += len(p.Data) + len(p.Metadata)
	}
	return size
}

// toRecord returns the message as it is stored, without its task and number.
func (m *Message) toRecord() (systemgraph.Record, error) {
	parts, err := plainjson.Encode(m.Parts)
	if err != nil {
		return nil, err
	}
	r := systemgraph.Record{
		propKey: systemgraph.Values(m.ID), propRole: systemgraph.Values(string(m.Role)), propParts: {jsonText(parts)},
		propAuthor: {kg.IRI(string(m.Author))}, propSaid: {kg.DateTime(m.Time)}, propMetadata: systemgraph.JSON(m.Metadata),
	}
	// Stored as JSON: the order matters, and no query asks for one element.
	if len(m.Extensions) > 0 {
		raw, err := plainjson.Encode(m.Extensions)
		if err != nil {
			return nil, err
		}
		r[propExtensions] = systemgraph.JSON(raw)
	}
	if m.Hops > 0 {
		r[propHops] = []kg.Term{kg.Integer(int64(m.Hops))}
	}
	for _, id := range m.References {
		r[propReferences] = append(r[propReferences], kg.String(string(id)))
	}
	return r, nil
}

// messageOf decodes a message; nil if the record is not a message.
func messageOf(r systemgraph.Record) (*Message, error) {
	if r[propParts] == nil {
		return nil, nil
	}
	m := &Message{
		ID: r.Text(propKey), Role: Role(r.Text(propRole)), Author: kg.AgentID(r.Text(propAuthor)),
		Metadata: r.JSON(propMetadata), Time: r.Time(propSaid), Hops: int(r.Integer(propHops)),
	}
	for _, id := range r.Texts(propReferences) {
		m.References = append(m.References, TaskID(id))
	}
	if raw := r.JSON(propExtensions); raw != nil {
		if err := json.Unmarshal(raw, &m.Extensions); err != nil {
			return nil, err
		}
	}
	return m, json.Unmarshal(r.JSON(propParts), &m.Parts)
}

func jsonText(raw []byte) kg.Term { return kg.Typed(string(raw), kg.RDF+"JSON") }
