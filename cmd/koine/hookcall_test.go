package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"koine/cmd/koine/internal/cli"
)

// hookCalls are the blocks of the protocol about the web hook of an agent behind the hub:
// the registration, the address and body that set the hook, and its call.
var hookCalls = regexp.MustCompile("(?s)X PUT http://127.0.0.1:8080/agents/bot -H [^\n]* -d '([^\n]*)'\n.*" +
	"X PUT http://127.0.0.1:8080/agents/bot/webhook -H [^\n]* -d '([^\n]*\"(https://bot.example)/[^\n]*)'\n.*" +
	"```http\n(.*?)```")

// A web hook set as in the protocol's document is called as shown there, except for ids and
// times. With UPDATE_README=1 the call is written into it.
func TestHookCallOfTheProtocol(t *testing.T) {
	const path = "../../docs/reference/hub.md"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	shown := hookCalls.FindStringSubmatch(string(text))
	if shown == nil {
		t.Fatal("it shows no call of a web hook")
	}
	card, hook, origin, call := shown[1], shown[2], shown[3], shown[4]
	called := make(chan string, 1)
	bot := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case called <- callLike(call, r):
		default: // once more: the test has what it wants
		}
	}))
	defer bot.Close()
	_, url := startServer(t, "--demo", "--allow-private-webhooks")
	if status, answer := ask(t, http.MethodPut, url+"/agents/bot", "bot", card); status != http.StatusCreated {
		t.Fatal(status, answer)
	}
	if status, answer := ask(t, http.MethodPut, url+"/agents/bot/webhook", "bot", strings.Replace(hook, origin, bot.URL, 1)); status != http.StatusOK {
		t.Fatal(status, answer)
	}
	const question = `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"rain-1","role":"ROLE_USER","parts":[{"text":"Will it rain?"}]},"configuration":{"returnImmediately":true}}}`
	if status, answer := ask(t, http.MethodPost, url+"/agents/bot/a2a", "dora", question); status != http.StatusOK {
		t.Fatal(status, answer)
	}
	var happens string
	select {
	case happens = <-called:
	case <-time.After(cli.RequestTimeout):
		t.Fatal("the web hook was not called")
	}
	if os.Getenv("UPDATE_README") != "" {
		text = []byte(strings.Replace(string(text), call, happens, 1))
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(mask(call), mask(happens)); diff != "" {
		t.Errorf("what %s shows is not what happens (-shown +happens); UPDATE_README=1 writes it:\n%s", path, diff)
	}
}

// callLike is a request as text, of its headers those that another one has.
func callLike(shown string, r *http.Request) string {
	var out strings.Builder
	out.WriteString(r.Method + " " + r.RequestURI + " " + r.Proto + "\n")
	head, _, _ := strings.Cut(shown, "\n\n")
	for _, line := range strings.Split(head, "\n")[1:] {
		name, _, _ := strings.Cut(line, ":")
		out.WriteString(name + ": " + strings.Join(r.Header.Values(name), ", ") + "\n")
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err.Error()
	}
	return out.String() + "\n" + string(body) + "\n"
}
