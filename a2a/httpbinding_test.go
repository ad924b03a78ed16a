package a2a_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"

	"koine/a2a"
	"koine/internal/sse"
	"koine/kg"
)

// httpVersions are the versions of A2A over HTTP+JSON: their paths, and the name of a
// message's parts.
var httpVersions = map[string]struct{ path, parts string }{"1.0": {"/a2a/http/", "parts"}, "0.3": {"/a2a/http/v1/", "content"}}

// say returns the body of a message with one part of text.
func say(parts, text string) string {
	return fmt.Sprintf(`{"message":{"messageId":%q,"role":"ROLE_USER",%q:[{"text":%q}]},"configuration":{"returnImmediately":true}}`, parts+text, parts, text)
}

var (
	httpEvent = regexp.MustCompile(`(?m)^id: (\S+)\ndata: (.*)$`)
	ofTask    = regexp.MustCompile(`"taskId":"([^"]+)"`)
)

// httpEvents reads a stream over HTTP+JSON to its end.
func (s *testServer) httpEvents(t *testing.T, method, path, body string, headers ...string) (out []told) {
	t.Helper()
	resp, got := s.overHTTP(t, method, path, body, headers...)
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%s %s %s: %d %s", method, path, headers, resp.StatusCode, got)
	}
	for _, m := range httpEvent.FindAllStringSubmatch(string(got), -1) {
		out = append(out, told{m[1], m[2]})
	}
	return out
}

// A stream over HTTP+JSON resumed after each of its events yields the rest, each once and in
// order, by both verbs; an id that is none is refused.
func TestHTTPStreamsGoOn(t *testing.T) {
	s := newTestServer(t)
	for version, v := range httpVersions {
		whole := s.httpEvents(t, "POST", v.path+"message:stream", say(v.parts, "do it"))
		if len(whole) != 5 {
			t.Fatalf("%s: %d events", version, len(whole))
		}
		path := v.path + "tasks/" + ofTask.FindStringSubmatch(whole[1].result)[1] + ":subscribe"
		for _, method := range []string{"GET", "POST"} {
			for i, e := range whole {
				if rest := s.httpEvents(t, method, path, "", "Last-Event-ID: "+e.id); !slices.Equal(rest, whole[i+1:]) {
					t.Errorf("%s: %s after event %d has %v, want %v", version, method, i, rest, whole[i+1:])
				}
			}
			resp, got := s.overHTTP(t, method, path, "", "Last-Event-ID: none")
			wantHTTPError(t, resp, got, http.StatusBadRequest, "INVALID_ARGUMENT", "POSITION_GONE", "koine", -32602, sdk.ErrInvalidParams)
			if !strings.Contains(string(got), `"field":"Last-Event-ID"`) {
				t.Errorf("%s: %s", version, got)
			}
		}
	}
}

// A stream that the server ends has an event named error, with the body of an error and the
// position to resume from, in both versions. The Go client returns it as an error.
func TestHTTPStreamsEndWithAnError(t *testing.T) {
	s := newTestServer(t)
	streams := map[string]*http.Response{}
	for version, v := range httpVersions {
		resp, got := s.overHTTP(t, "POST", v.path+"message:send", say(v.parts, "wait"))
		id := remembered["task"].FindSubmatch(got)
		if id == nil {
			t.Fatal(resp.StatusCode, string(got))
		}
		streams[version] = s.send(t, []byte("GET "+v.path+"tasks/"+string(id[1])+":subscribe\nX-Agent-ID: ann\n\n"), nil)
	}
	client, err := a2aclient.NewFromEndpoints(t.Context(), []*sdk.AgentInterface{sdk.NewAgentInterface(s.URL+"/a2a/http", sdk.TransportProtocolHTTPJSON)})
	if err != nil {
		t.Fatal(err)
	}
	message := sdk.NewMessage(sdk.MessageRoleUser, sdk.NewTextPart("wait"))
	events := 0
	for event, err := range client.SendStreamingMessage(t.Context(), &sdk.SendMessageRequest{Message: message}) {
		switch {
		case err == nil && event.TaskInfo().TaskID != "" && events == 0:
			events++
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			if err := s.streams.Shutdown(ctx); err != nil {
				t.Fatal(err)
			}
		case err == nil || events != 1 || !strings.Contains(err.Error(), "the server is shutting down"):
			t.Errorf("after %d events: %+v, %v", events, event, err)
		default:
			events++
		}
	}
	if events != 2 {
		t.Errorf("the Go client reads %d events", events)
	}
	const info = `{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"SERVER_SHUTDOWN","domain":"koine","metadata":{"hint":"Resume from the position; without one, start again.","position":"%s"}}`
	const failure = `"error":{"code":503,"status":"UNAVAILABLE","message":"the server is shutting down","details":[` + info + `,{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"INTERNAL_ERROR","domain":"a2a-protocol.org"}]}}`
	for version, resp := range streams {
		got, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		first := httpEvent.FindSubmatch(got)
		if first == nil {
			t.Fatalf("%s: %s", version, got)
		}
		position := string(first[1])
		want := fmt.Sprintf(`{`+failure, position)
		if version == "0.3" {
			want = fmt.Sprintf(`{"code":-32603,"message":"the server is shutting down","data":[`+info+`],`+failure, position, position)
		}
		if _, last, _ := strings.Cut(string(got), "event: "); last != "error\ndata: "+want+"\n\n" {
			t.Errorf("%s: got %s\nwant %s", version, got, want)
		}
	}
}

// With all places of streams taken, a further one is refused with 503 and a delay before it
// begins.
func TestHTTPStreamsAreBounded(t *testing.T) {
	s := newTestServerWith(t, kg.Options{}, sse.Options{MaxStreams: 1, RetryAfter: 7 * time.Second}, a2a.Options{})
	_, got := s.overHTTP(t, "POST", "/a2a/http/message:send", say("parts", "wait"))
	path := "tasks/" + string(remembered["task"].FindSubmatch(got)[1]) + ":subscribe"
	open := s.send(t, []byte("GET /a2a/http/"+path+"\nX-Agent-ID: ann\n\n"), nil)
	defer open.Body.Close()
	if open.StatusCode != http.StatusOK {
		t.Fatal(open.Status)
	}
	for version, v := range httpVersions {
		resp, got := s.overHTTP(t, "POST", v.path+path, "")
		wantHTTPError(t, resp, got, http.StatusServiceUnavailable, "UNAVAILABLE", "TOO_MANY_STREAMS", "koine", -32603, sdk.ErrInternalError)
		if after := resp.Header.Get("Retry-After"); after != "7" {
			t.Errorf("%s: Retry-After %q", version, after)
		}
	}
}

// A body of exactly MaxBodyBytes is read; one byte more is refused with 413, whether its
// length is declared or not.
func TestHTTPBodiesAreBounded(t *testing.T) {
	const most = 400
	s := newTestServerWith(t, kg.Options{}, sse.Options{}, a2a.Options{MaxBodyBytes: most})
	for version, v := range httpVersions {
		for _, row := range []struct {
			path   string
			body   string
			status int // of one that is read
		}{
			{"message:send", say(v.parts, "answer"), http.StatusOK},
			{"message:stream", say(v.parts, "do it"), http.StatusOK},
			{"tasks/none:cancel", `{}`, http.StatusNotFound},
			{"tasks/none/pushNotificationConfigs", `{"url":"https://192.0.2.1/","pushNotificationConfig":{"url":"https://192.0.2.1/"}}`, http.StatusNotFound},
		} {
			body := row.body + strings.Repeat(" ", most-len(row.body))
			if resp, got := s.overHTTP(t, "POST", v.path+row.path, body); resp.StatusCode != row.status {
				t.Errorf("%s: %s with the most bytes: %d %s", version, row.path, resp.StatusCode, got)
			}
			resp, got := s.overHTTP(t, "POST", v.path+row.path, body+" ")
			wantHTTPError(t, resp, got, http.StatusRequestEntityTooLarge, "INVALID_ARGUMENT", "LIMIT_EXCEEDED", "koine", -32600, sdk.ErrInvalidRequest)
			r, err := http.NewRequestWithContext(t.Context(), "POST", s.URL+v.path+row.path, io.MultiReader(strings.NewReader(body), strings.NewReader(" ")))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/json")
			if resp, err = s.Client().Do(r); err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if r.ContentLength != 0 || resp.StatusCode != http.StatusRequestEntityTooLarge {
				t.Errorf("%s: %s of no declared length: %d", version, row.path, resp.StatusCode)
			}
		}
	}
}

// A path of another kind is 404, and another verb 405 with those that the path has in Allow.
// koine has one tenant, whose name no path has.
func TestHTTPPaths(t *testing.T) {
	s := newTestServer(t)
	rows := map[string][]string{
		"message:send": {"POST"}, "message:stream": {"POST"}, "tasks/x": {"GET"}, "tasks/x:cancel": {"POST"}, "tasks/x:subscribe": {"POST", "GET"},
		"tasks/x/pushNotificationConfigs": {"POST", "GET"}, "tasks/x/pushNotificationConfigs/y": {"GET", "DELETE"}, "tasks/x:other": {"GET"},
	}
	only := map[string]map[string][]string{"1.0": {"tasks": {"GET"}, "extendedAgentCard": {"GET"}}, "0.3": {"card": {"GET"}}}
	none := []string{"", "nothing", "message:sent", "messages", "tasks/", "tasks/x/", "tasks/x/other", "tasks/x/pushNotificationConfigs/",
		"tasks/x/pushNotificationConfigs/y/z", "a-tenant/message:send", "a-tenant/tasks", "a-tenant/tasks/x", "v2/tasks"}
	for version, v := range httpVersions {
		known := maps.Clone(rows)
		maps.Copy(known, only[version])
		for path, verbs := range known {
			for _, verb := range []string{"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "MADEUP"} {
				resp, got := s.overHTTP(t, verb, v.path+path, "")
				if slices.Contains(verbs, verb) {
					if resp.StatusCode == http.StatusMethodNotAllowed || strings.Contains(string(got), "METHOD_NOT_FOUND") {
						t.Errorf("%s %s in %s: %d %s", verb, path, version, resp.StatusCode, got)
					}
					continue
				}
				wantHTTPError(t, resp, got, http.StatusMethodNotAllowed, "UNIMPLEMENTED", "METHOD_NOT_FOUND", "koine", -32601, sdk.ErrMethodNotFound)
				if allow := resp.Header.Get("Allow"); allow != strings.Join(verbs, ", ") {
					t.Errorf("%s %s in %s allows %q, want %v", verb, path, version, allow, verbs)
				}
			}
		}
		for _, others := range only {
			for path := range others {
				if only[version][path] == nil {
					none = append(none, path)
				}
			}
		}
		for _, path := range none {
			for _, verb := range []string{"GET", "POST", "DELETE"} {
				if only[version][path] != nil {
					continue
				}
				resp, got := s.overHTTP(t, verb, v.path+path, "")
				wantHTTPError(t, resp, got, http.StatusNotFound, "UNIMPLEMENTED", "METHOD_NOT_FOUND", "koine", -32601, sdk.ErrMethodNotFound)
				if allow := resp.Header.Get("Allow"); allow != "" {
					t.Errorf("%s %s in %s allows %q", verb, path, version, allow)
				}
			}
		}
	}
}

// A body that is not declared as JSON in UTF-8 is refused with 415: a page of another origin
// can send forms and plain text without a preflight request. A request without a body needs
// no type.
func TestHTTPContentTypes(t *testing.T) {
	s := newTestServer(t)
	for version, v := range httpVersions {
		for header, ok := range map[string]bool{
			"Content-Type: application/json": true, "Content-Type: application/a2a+json": true, "Content-Type: APPLICATION/JSON; charset=UTF-8": true,
			"Content-Type: ": false, "Content-Type: text/plain": false, "Content-Type: application/x-www-form-urlencoded": false,
			"Content-Type: application/json; charset=latin1": false, "Content-Type: application/json, text/plain": false, "Content-Encoding: gzip": false,
		} {
			for path, body := range map[string]string{"message:send": say(v.parts, "answer"), "message:stream": say(v.parts, "do it"), "tasks/none:cancel": "{}"} {
				resp, got := s.overHTTP(t, "POST", v.path+path, body, header)
				if ok != (resp.StatusCode != http.StatusUnsupportedMediaType) {
					t.Errorf("%s in %s with %q: %d %s", path, version, header, resp.StatusCode, got)
				}
				if !ok {
					wantHTTPError(t, resp, got, http.StatusUnsupportedMediaType, "INVALID_ARGUMENT", "CONTENT_TYPE_NOT_SUPPORTED", "a2a-protocol.org", -32005, sdk.ErrUnsupportedContentType)
				}
			}
		}
		if resp, got := s.overHTTP(t, "POST", v.path+"tasks/none:cancel", "", "Content-Type: "); resp.StatusCode != http.StatusNotFound {
			t.Errorf("no body and no type in %s: %d %s", version, resp.StatusCode, got)
		}
	}
}

// An answer of 1.0 has A2A's media type (A2A 1.0, section 11.1) for a client that accepts it,
// also an error; otherwise, and in 0.3, application/json.
func TestHTTPMediaType(t *testing.T) {
	s := newTestServer(t)
	for accept, want := range map[string]string{
		"": "application/json", "application/json": "application/json", "*/*": "application/json",
		"application/a2a+json": "application/a2a+json", "application/a2a+json, application/json": "application/a2a+json",
	} {
		for path, mediaType := range map[string]string{"tasks": want, "tasks/none": want, "v1/tasks/none": "application/json"} {
			resp, _ := s.overHTTP(t, "GET", "/a2a/http/"+path, "", "Accept: "+accept)
			if got := resp.Header.Get("Content-Type"); got != mediaType {
				t.Errorf("%s with Accept %q: %s, want %s", path, accept, got, mediaType)
			}
			if vary := resp.Header.Get("Vary"); (vary == "Accept") == strings.HasPrefix(path, "v1/") {
				t.Errorf("%s: Vary %q", path, vary)
			}
		}
	}
}

// The parameters of a query have the forms of A2A 1.0, section 11.5; any other is refused
// with 400 and its name. Unknown parameters are ignored, as unknown members of a body are.
func TestHTTPQueries(t *testing.T) {
	s := newTestServer(t)
	var id string
	for _, text := range []string{"do it", "ask"} {
		_, got := s.overHTTP(t, "POST", "/a2a/http/message:send", strings.Replace(say("parts", text), "true", "false", 1))
		id = string(remembered["task"].FindSubmatch(got)[1])
	}
	for query, want := range map[string]struct{ has, not string }{
		"tasks":                                           {`"totalSize":2`, `"artifacts"`},
		"tasks?pageSize=1":                                {`"pageSize":1`, `"nextPageToken":""`},
		"tasks?pageSize=%2B1":                             {`"pageSize":1,`, `"nextPageToken":""`},
		"tasks?pageSize=001":                              {`"pageSize":1,`, `"nextPageToken":""`},
		"tasks?historyLength=0":                           {`"totalSize":2`, `"history"`},
		"tasks?historyLength=1":                           {`"history"`, `"artifacts"`},
		"tasks?includeArtifacts=true":                     {`"artifacts"`, "none of this"},
		"tasks?includeArtifacts=false":                    {`"totalSize":2`, `"artifacts"`},
		"tasks?contextId=none":                            {`"totalSize":0`, "none of this"},
		"tasks?status=TASK_STATE_COMPLETED":               {`"totalSize":1`, "INPUT_REQUIRED"},
		"tasks?statusTimestampAfter=2999-01-01T00:00:00Z": {`"totalSize":0`, "none of this"},
		"tasks?unknown=x&pageSize=2":                      {`"pageSize":2`, "none of this"},
		"tasks/" + id:                                     {`"history"`, "none of this"},
		"tasks/" + id + "?historyLength=0":                {id, `"history"`},
		"v1/tasks/" + id + "?historyLength=0":             {id, `"history"`},
	} {
		resp, got := s.overHTTP(t, "GET", "/a2a/http/"+query, "")
		if resp.StatusCode != http.StatusOK || !strings.Contains(string(got), want.has) || strings.Contains(string(got), want.not) {
			t.Errorf("%s: %d %s", query, resp.StatusCode, got)
		}
	}
	for _, path := range []string{"tasks", "tasks/" + id, "v1/tasks/" + id} {
		names := []string{"historyLength"}
		if path == "tasks" {
			names = []string{"historyLength", "pageSize", "includeArtifacts", "status", "statusTimestampAfter", "pageToken"}
		}
		for _, name := range names {
			for _, value := range []string{"x", "1.5", "1e1", "-1", "null", "[]", "9999999999", "99999999999999999999"} {
				if name == "historyLength" && value == "9999999999" {
					continue // more than there is
				}
				resp, got := s.overHTTP(t, "GET", "/a2a/http/"+path+"?"+name+"="+value, "")
				var e httpError
				if err := json.Unmarshal(got, &e); err != nil || resp.StatusCode != http.StatusBadRequest || e.Error.Status != "INVALID_ARGUMENT" || !strings.Contains(string(got), `"field":"`+name+`"`) {
					t.Errorf("%s?%s=%s: %d %s", path, name, value, resp.StatusCode, got)
				}
			}
		}
	}
	for _, query := range []string{"pageSize=0", "pageSize=101", "pageSize=", "includeArtifacts=True", "includeArtifacts=1", "includeArtifacts="} {
		if resp, got := s.overHTTP(t, "GET", "/a2a/http/tasks?"+query, ""); resp.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %d %s", query, resp.StatusCode, got)
		}
	}
}

// The answer names the extensions that the request activates, under the header of either
// version, also in a stream and beside an error.
func TestHTTPExtensions(t *testing.T) {
	s := newTestServer(t)
	asked := a2a.ChannelsExtensionURI + ", urn:x:unknown"
	for version, v := range httpVersions {
		for _, name := range []string{"A2A-Extensions", "X-A2A-Extensions"} {
			for _, row := range []struct{ method, path, body string }{
				{"POST", "message:send", say(v.parts, "answer")}, {"POST", "message:stream", say(v.parts, "do it")}, {"GET", "tasks/none", ""}, {"GET", "nothing", ""},
			} {
				resp, _ := s.overHTTP(t, row.method, v.path+row.path, row.body, name+": "+asked)
				if got := resp.Header.Get(name); got != a2a.ChannelsExtensionURI {
					t.Errorf("%s in %s: %s is %q", row.path, version, name, got)
				}
			}
		}
		resp, _ := s.overHTTP(t, "GET", v.path+"tasks/none", "")
		if got := resp.Header.Get("A2A-Extensions") + resp.Header.Get("X-A2A-Extensions"); got != "" {
			t.Errorf("nothing is asked for in %s, and active is %q", version, got)
		}
	}
}
