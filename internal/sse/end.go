package sse

import "context"

// End is the end of a stream for a reason of the server, for the operator. It has no content:
// no query, statement or credential.
type End struct {
	Transport string // one of a fixed set, as a label of metrics
	Reason    string // the code that the client gets, one of a fixed set
	Cause     string // refines the reason; "" for none
	Method    string // the method or root field; "" for a connection with several operations
	Position  string // the position to resume from; "" if unknown
}

// ReportEnd passes the end of a stream to Options.Ended. ctx carries the caller. Each protocol
// calls it at the one place where its streams end.
func (s *Server) ReportEnd(ctx context.Context, e End) {
	if s.options.Ended != nil {
		s.options.Ended(ctx, e)
	}
}
