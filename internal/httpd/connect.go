package httpd

import (
	"context"
	"encoding/json"
	"net/http"

	"koine/internal/caller"
	"koine/kg"
)

// Connect says whose the operations of a WebSocket are (transport.Options), from
// who opened it and the payload of its first message. Browsers cannot give a
// WebSocket headers, so the payload may have them: as members of its own, or below
// "headers". end is called when the credential stops being good before ctx ends.
// In open mode the payload says nothing.
func (s *Server) Connect(ctx context.Context, end func(error), opened caller.Caller, payload json.RawMessage) (caller.Caller, error) {
	if s.options.Admit == nil {
		return opened, nil
	}
	header := headersIn(payload)
	credential, refused := credentialOf(header)
	if refused == nil && credential == "" && opened.Principal.Method == MethodNone {
		refused = noCredential
	}
	if refused != nil {
		return opened, s.notConnected(ctx, opened, refused)
	}
	who := opened
	if credential != "" {
		p, release, err := s.options.Admit(ctx, credential, end)
		if err != nil {
			return opened, s.notConnected(ctx, opened, notAdmitted(err))
		}
		context.AfterFunc(ctx, release)
		who.Principal, who.Actor = p, ""
	}
	if refused := s.actFor(ctx, header, &who); refused != nil {
		return opened, s.notConnected(ctx, who, refused)
	}
	if refused := mayRead(&who); refused != nil {
		return opened, s.notConnected(ctx, who, refused)
	}
	return who, nil
}

// notConnected notes why a socket is not let in, and gives it as an error.
func (s *Server) notConnected(ctx context.Context, who caller.Caller, f *refusal) error {
	s.noteRefusal(ctx, who, f)
	return f.error()
}

// error is the refusal for who answers otherwise than with a response.
func (f *refusal) error() error { return kg.Errorf(kg.Code(f.reason), "%s", f.message) }

// headersIn takes the headers out of a payload; what is none is left.
func headersIn(payload json.RawMessage) http.Header {
	header := http.Header{}
	var members map[string]json.RawMessage
	if json.Unmarshal(payload, &members) != nil {
		return header
	}
	addHeaders(header, members)
	for name, value := range members {
		var below map[string]json.RawMessage
		if http.CanonicalHeaderKey(name) == "Headers" && json.Unmarshal(value, &below) == nil {
			addHeaders(header, below)
		}
	}
	return header
}

func addHeaders(header http.Header, members map[string]json.RawMessage) {
	for name, value := range members {
		var text string
		if json.Unmarshal(value, &text) == nil {
			header.Add(name, text)
		}
	}
}
