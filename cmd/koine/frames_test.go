package main

import (
	"context"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/google/go-cmp/cmp"

	"koine/internal/slowtest"
)

// frames is a block of frames that sockets send (>) and receive (<), each line with its
// agent.
var frames = regexp.MustCompile("(?s)```frames\n(.*?)```")

// The frames of the protocol's document are real, except for times and ids. With
// UPDATE_README=1 they are written into it.
func TestFramesOfTheProtocol(t *testing.T) {
	const path = "../../docs/reference/rest.md"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	shown := frames.FindStringSubmatch(string(text))
	if shown == nil {
		t.Fatal("it shows no frames")
	}
	_, url := startServer(t, "--demo")
	if status, answer := ask(t, http.MethodPut, url+"/agents/bot", "bot", `{"name":"Bot"}`); status != http.StatusCreated {
		t.Fatal(answer)
	}
	happens := talk(t, url+"/rest/ws", shown[1])
	if os.Getenv("UPDATE_README") != "" {
		text = []byte(strings.Replace(string(text), shown[1], happens, 1))
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(mask(shown[1]), mask(happens)); diff != "" {
		t.Errorf("what %s shows is not what happens (-shown +happens); UPDATE_README=1 writes it:\n%s", path, diff)
	}
}

var ids = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`)

// talk sends the frames to send, with the received ids in place of those shown, and returns
// all lines.
func talk(t *testing.T, url, lines string) string {
	ctx, cancel := context.WithTimeout(t.Context(), slowtest.Slack(2*time.Minute))
	defer cancel()
	sockets := map[string]*websocket.Conn{}
	for _, agent := range []string{"dora", "bot"} {
		conn, _, err := websocket.Dial(ctx, url, &websocket.DialOptions{HTTPHeader: http.Header{"X-Agent-ID": {agent}}})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.CloseNow()
		sockets[agent] = conn
	}
	heard := map[string]string{}
	var happens strings.Builder
	for line := range strings.Lines(lines) {
		agent, frame, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		conn := sockets[strings.TrimRight(agent, "<>")]
		if strings.HasSuffix(agent, ">") {
			frame = ids.ReplaceAllStringFunc(frame, func(id string) string { return heard[id] })
			if err := conn.Write(ctx, websocket.MessageText, []byte(frame)); err != nil {
				t.Fatal(err)
			}
		} else {
			_, text, err := conn.Read(ctx)
			if err != nil {
				t.Fatal(err)
			}
			real := ids.FindAllString(string(text), -1)
			for i, id := range ids.FindAllString(frame, len(real)) {
				heard[id] = real[i]
			}
			frame = string(text)
		}
		happens.WriteString(agent + " " + frame + "\n")
	}
	return happens.String()
}
