//go:build unix

package a2a_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"koine/channels"
	"koine/channels/channel"
	"koine/kg"
)

// BenchmarkOpenChannelStreams measures the cost of an open channels/stream for the server
// over real sockets, as BenchmarkOpenStreams does: all follow one channel, and each has had
// one message. The aim is at most 48 KiB.
func BenchmarkOpenChannelStreams(b *testing.B) {
	const streams = 1000
	needFiles(b, 2*streams+200)
	var used usage
	for range b.N {
		s := startBench(b)
		ann := channels.Caller{Principal: kg.Principal{ID: "agent://ann", Method: "key"}}
		c, err := s.rooms.Create(b.Context(), ann, channel.Draft{Visibility: channel.Public})
		if err != nil {
			b.Fatal(err)
		}
		say := func() {
			_, err := s.rooms.Publish(b.Context(), ann, channels.Publication{Channel: c.ID, Parts: []json.RawMessage{[]byte(`{"type":"text","text":"hello"}`)}})
			if err != nil {
				b.Fatal(err)
			}
		}
		say()
		clients := make([]socket, 0, streams)
		before := footprint()
		for i := range streams {
			clients = append(clients, openSocket(b, s.addr))
			clients[i].ask(b, post("/a2a", fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"channels/stream","params":{"channelId":%q}}`, i, c.ID)))
		}
		say()
		for i, c := range clients {
			c.await(b, fmt.Appendf(nil, `data: {"jsonrpc":"2.0","id":%d,"result":{"kind":"messageEvent"`, i))
		}
		used.since(before)
		for _, c := range clients {
			c.close(b)
		}
	}
	used.report(b, streams*b.N)
}
