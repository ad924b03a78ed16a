package agentchat_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"koine/channels"
	"koine/internal/dialect/agentchat"
	"koine/internal/wiretest"
)

// TestWire runs the conversations of testdata/wire (package wiretest). The first word of a
// comment may be the options of the server: "public", "keys", "off", "unsearched" or "oversee",
// in which ${ova} is a key with the role of overseers.
//
// A step may be "SOCKET name", and lines that begin with "open PATH" (and headers), "> frame"
// or "read N" (N frames, sorted, because answers and events are not ordered among each
// other) or "close" (until it is closed).
func TestWire(t *testing.T) {
	wiretest.Run(t, masks, func(c *wiretest.Conversation) func(string) string {
		o, co := agentchat.Options{Registration: agentchat.RegisterOpen}, channels.Options{}
		switch first, _, _ := strings.Cut(c.Comment, ":"); first {
		case "public":
			o.PublicDirectory = true
		case "keys":
			o.Registration = agentchat.RegisterKeys
		case "off":
			o.Registration = agentchat.RegisterOff
		case "oversee":
			co.OverseerRole = "auditor"
		}
		s := &conversation{startWith(c.T, o, co), map[string]*peer{}}
		if strings.HasPrefix(c.Comment, "unsearched:") {
			s.stopSearch()
		}
		if co.OverseerRole != "" {
			c.Known["ova"] = s.keyWith("ova", co.OverseerRole)
		}
		return s.step
	})
}

// conversation is the state of a file.
type conversation struct {
	*server
	sockets map[string]*peer
}

// masks replace values that differ between runs, with the ids of agents.
var masks = append(valueMasks, wiretest.NewMasks(`ag_[a-z0-9]{20}`, `<agent>`)...)

var valueMasks = wiretest.NewMasks(
	`ak_(live|test)_[0-9A-Za-z_]{40,}`, `<ak_$1>`,
	`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`, `<uuid>`,
	`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`, `<time>`,
	`"day":"\d{4}-\d\d-\d\d"`, `"day":"<day>"`,
	`"next_cursor":"[A-Za-z0-9_-]{20,}"`, `"next_cursor":"<cursor>"`,
	`"retry_after_ms":\d+`, `"retry_after_ms":<ms>`,
	` retry=\d+`, ` retry=<s>`,
)

// step executes a step and returns its answer.
func (c *conversation) step(step string) string {
	c.t.Helper()
	first, rest, _ := strings.Cut(strings.TrimSuffix(step, "\n"), "\n")
	if name, ok := strings.CutPrefix(first, "SOCKET "); ok {
		return c.onSocket(name, rest)
	}
	r := wiretest.NewRequest(c.t, c.URL, step, http.Header{"Content-Type": {"application/json"}})
	return wiretest.Answer(c.t, wiretest.Do(c.t, c.Client(), r), "Content-Type", "Allow", "WWW-Authenticate", "Upgrade", "retry=Retry-After")
}

// onSocket executes the lines of a step on a socket and returns the frames that it read.
func (c *conversation) onSocket(name, lines string) string {
	c.t.Helper()
	var b strings.Builder
	for line := range strings.SplitSeq(lines, "\n") {
		verb, rest, _ := strings.Cut(line, " ")
		p := c.sockets[name]
		switch verb {
		case "open":
			path, header, _ := strings.Cut(rest, " ")
			o := &websocket.DialOptions{HTTPHeader: http.Header{}}
			if field, value, ok := strings.Cut(header, ": "); ok {
				o.HTTPHeader.Set(field, value)
			}
			conn, _, err := websocket.Dial(c.t.Context(), c.URL+path, o)
			if err != nil {
				c.t.Fatal(err)
			}
			conn.SetReadLimit(1 << 20)
			c.t.Cleanup(func() { _ = conn.CloseNow() })
			c.sockets[name] = &peer{c.t, conn}
		case ">":
			p.send(rest)
		case "read":
			n, err := strconv.Atoi(rest)
			if err != nil {
				c.t.Fatal(err)
			}
			var frames []string
			for range n {
				frame, err := p.read()
				if err != nil {
					c.t.Fatalf("%s: %v after %q", name, err, frames)
				}
				frames = append(frames, "< "+frame+"\n")
			}
			slices.Sort(frames)
			b.WriteString(strings.Join(frames, ""))
		case "close":
			for {
				frame, err := p.read()
				var closed websocket.CloseError
				if errors.As(err, &closed) {
					fmt.Fprintf(&b, "closed %d %s\n", closed.Code, closed.Reason)
					break
				}
				if err != nil {
					c.t.Fatal(err)
				}
				fmt.Fprintf(&b, "< %s\n", frame)
			}
		case "hangup":
			_ = p.conn.Close(websocket.StatusNormalClosure, "")
		default:
			c.t.Fatalf("not a line of a socket: %s", line)
		}
	}
	return b.String()
}
