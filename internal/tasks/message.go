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
	"koine/internal/records"
	"koine/kg"
)

// check refuses a message that is not well formed, or past a bound.
func (m *Message) check() error {
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
		return errTooMuch("referenceTaskIds", "a message speaks of at most %d other tasks", MaxReferences)
	}
	for _, id := range m.References {
		if err := checkKey("referenceTaskIds", string(id)); err != nil {
			return err
		}
	}
	return checkExtensions(m.Extensions)
}

// OfTypes refuses a message with a part of another media type than these, for an agent
// that takes no others; "text/*" is all of text. A part that does not say is of any.
func (m *Message) OfTypes(types ...string) error {
	for i := range m.Parts {
		of := m.Parts[i].MediaType
		if of == "" {
			continue
		}
		base, _, err := mime.ParseMediaType(of)
		family, _, _ := strings.Cut(base, "/")
		if err != nil || !slices.Contains(types, base) && !slices.Contains(types, family+"/*") {
			return errContentType(fmt.Sprintf("parts[%d].mediaType", i), of)
		}
	}
	return nil
}

func checkExtensions(list []string) error {
	if len(list) > MaxExtensions {
		return errTooMuch("extensions", "at most %d extensions are named", MaxExtensions)
	}
	for _, uri := range list {
		if err := checkKey("extensions", uri); err != nil {
			return err
		}
	}
	return nil
}

// checkKey bounds an id that somebody else chose.
func checkKey(field, key string) error {
	switch {
	case len(key) > MaxKeyBytes:
		return errTooMuch(field, "at most %d bytes", MaxKeyBytes)
	case !utf8.ValidString(key):
		return kg.Errorf(kg.CodeInvalid, "it is no text").At(field)
	}
	return nil
}

func checkText(field, text string) error {
	switch {
	case len(text) > MaxTextBytes:
		return errTooMuch(field, "at most %d bytes", MaxTextBytes)
	case !utf8.ValidString(text):
		return kg.Errorf(kg.CodeInvalid, "it is no text").At(field)
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
		return kg.Errorf(kg.CodeInvalid, "metadata is an object").At(field)
	}
	return nil
}

func checkParts(field string, parts []Part) error {
	switch {
	case len(parts) == 0:
		return kg.Errorf(kg.CodeInvalid, "it has no part").At(field)
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
					return kg.Errorf(kg.CodeInvalid, "it is no text").At(at)
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
			return kg.Errorf(kg.CodeInvalid, "a part is one of text, raw, url and data").At(at)
		}
		for _, text := range []string{p.Type, p.MediaType, p.Filename} {
			if err := checkText(at, text); err != nil {
				return err
			}
		}
		if err := checkMetadata(at+".metadata", p.Metadata); err != nil {
			return err
		}
	}
	if size := sizeOf(parts); size > MaxMessageBytes {
		return errTooMuch(field, "%d bytes of content are more than the %d of one message or chunk", size, MaxMessageBytes)
	}
	return nil
}

// isBase64 tells whether a text is bytes in base64, of the standard alphabet or that of URLs,
// with or without padding, as JSON of protocol buffers has it.
func isBase64(text string) bool {
	if strings.ContainsAny(text, "\r\n") { // which the decoders pass over
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

// sizeOf is how many bytes of content there are.
func sizeOf(parts []Part) (size int) {
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

// record is the message as it is stored, but for its place.
func (m *Message) record() (records.Record, error) {
	parts, err := plainjson.Encode(m.Parts)
	if err != nil {
		return nil, err
	}
	r := records.Record{
		propKey: records.Values(m.ID), propRole: records.Values(string(m.Role)), propParts: {jsonText(parts)},
		propAuthor: {kg.IRI(string(m.Author))}, propSaid: {kg.DateTime(m.Time)}, propMetadata: someJSON(m.Metadata),
	}
	// Lists that have an order and are never asked for alone.
	if len(m.Extensions) > 0 {
		raw, err := plainjson.Encode(m.Extensions)
		if err != nil {
			return nil, err
		}
		r[propExtensions] = []kg.Term{jsonText(raw)}
	}
	for _, id := range m.References {
		r[propReferences] = append(r[propReferences], kg.String(string(id)))
	}
	return r, nil
}

// messageOf reads a message; nil for what is none.
func messageOf(r records.Record) (*Message, error) {
	if r[propParts] == nil {
		return nil, nil
	}
	m := &Message{
		ID: r.Text(propKey), Role: Role(r.Text(propRole)), Author: kg.AgentID(r.Text(propAuthor)),
		Metadata: rawOf(r, propMetadata), Time: r.Time(propSaid),
	}
	for _, id := range r.Texts(propReferences) {
		m.References = append(m.References, TaskID(id))
	}
	if raw := rawOf(r, propExtensions); raw != nil {
		if err := json.Unmarshal(raw, &m.Extensions); err != nil {
			return nil, err
		}
	}
	return m, json.Unmarshal(rawOf(r, propParts), &m.Parts)
}

func rawOf(r records.Record, name string) json.RawMessage {
	if text := r.Text(name); text != "" {
		return json.RawMessage(text)
	}
	return nil
}

func jsonText(raw []byte) kg.Term { return kg.Typed(string(raw), kg.RDF+"JSON") }

func someJSON(raw json.RawMessage) []kg.Term {
	if len(raw) == 0 {
		return nil
	}
	return []kg.Term{jsonText(raw)}
}

func someText(text string) []kg.Term {
	if text == "" {
		return nil
	}
	return records.Values(text)
}
