package httpd

import (
	"context"
	"encoding/json"
	"net/http"

	"koine/internal/caller"
	"koine/kg"
)

// Connect authenticates the operations of a WebSocket (transport.Options) from its
// opener and the payload of its first message. Browsers cannot set headers on a
// WebSocket, so the payload may contain them: as its own members, or below "headers".
// Connect calls end when the credential becomes invalid before ctx ends. In open mode
// the payload is ignored.
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
	by := opened
	if credential != "" {
		p, release, err := s.options.Admit(ctx, credential, end)
		if err != nil {
			return opened, s.notConnected(ctx, opened, notAdmitted(err))
		}
		context.AfterFunc(ctx, release)
		by.Principal, by.Actor = p, ""
	}
	if refused := s.actFor(ctx, header, &by); refused != nil {
		return opened, s.notConnected(ctx, by, refused)
	}
	if refused := checkRead(&by); refused != nil {
		return opened, s.notConnected(ctx, by, refused)
	}
	return by, nil
}

// notConnected records the refusal of a socket and returns it as an error.
func (s *Server) notConnected(ctx context.Context, by caller.Caller, f *refusal) error {
	s.noteRefusal(ctx, by, f)
	return kg.Errorf(kg.Code(f.reason), "%s", f.message)
}

// headersIn extracts the headers from a payload and ignores other members.
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
