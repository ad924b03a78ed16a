package a2a

import (
	"context"
	"maps"
	"net/http"
	"net/url"

	"koine/internal/caller"
)

// call is one request for a method.
type call struct {
	caller caller.Caller
	method string
	params []byte // nil if absent
	header http.Header
	query  url.Values // query parameters; nil if none
	http   *http.Request
	byPath bool // the path names the version (HTTP+JSON)
}

// method is a row of the method table. Exactly one of unary and stream is set.
type method struct {
	family family
	// unary returns the result.
	unary func(context.Context, *call) (any, error)
	// stream reads the params and returns how to establish the stream. Nothing is
	// written before that.
	stream func(context.Context, *call) (*opening, error)
}

// methodTable returns the method table.
func (h *Handler) methodTable() map[string]method {
	table := map[string]method{
		"knowledge/query":     {family: queries, unary: h.queryKnowledge},
		"knowledge/update":    {family: updates, unary: h.updateKnowledge},
		"knowledge/subscribe": {family: subscriptions, stream: h.subscribeKnowledge},
	}
	if h.channels != nil {
		maps.Copy(table, map[string]method{
			"channels/create":       {family: channelCalls, unary: h.createChannel},
			"channels/get":          {family: channelCalls, unary: h.getChannel},
			"channels/list":         {family: channelCalls, unary: h.listChannels},
			"channels/update":       {family: channelCalls, unary: h.updateChannel},
			"channels/delete":       {family: channelCalls, unary: h.deleteChannel},
			"channels/addMember":    {family: channelCalls, unary: h.addMember},
			"channels/removeMember": {family: channelCalls, unary: h.removeMember},
			"channels/publish":      {family: channelCalls, unary: h.publishMessage},
			"channels/history":      {family: channelCalls, unary: h.listHistory},
			"channels/stream":       {family: channelStreams, stream: h.channelStream},
		})
	}
	if h.tasks != nil {
		maps.Copy(table, h.coreMethods())
	}
	return table
}
