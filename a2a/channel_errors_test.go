package a2a_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"koine/a2a"
	"koine/channels"
	"koine/channels/channel"
	"koine/internal/sse"
	"koine/kg"
)

// paramsOfChannelMethods are all methods about one channel, with the params besides its id.
var paramsOfChannelMethods = map[string]string{
	"channels/get":          ``,
	"channels/update":       `,"expectedVersion":1,"name":"x"`,
	"channels/delete":       ``,
	"channels/addMember":    `,"principalId":"eve"`,
	"channels/removeMember": `,"principalId":"eve"`,
	"channels/publish":      `,"parts":[{"type":"text","text":"x"}]`,
	"channels/history":      `,"sinceSequence":7`,
	"channels/stream":       `,"sinceSequence":7`,
}

// Every method of the extensions is in the tables that the other tests go by.
func TestEveryMethodIsTested(t *testing.T) {
	s := newTestServer(t)
	var answer struct {
		Error struct{ Data struct{ Supported []string } }
	}
	got := s.call(t, "ann", "channels/none", `{}`)
	if err := json.Unmarshal([]byte(got[strings.Index(got, "{"):]), &answer); err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, method := range answer.Error.Data.Supported {
		family, _, ofExtension := strings.Cut(method, "/")
		if !ofExtension || family != "knowledge" && family != "channels" {
			continue
		}
		found++
		if schemaNames[method].request == "" {
			t.Errorf("%s has no definitions in schemaNames", method)
		}
		aboutOne := family == "channels" && method != "channels/create" && method != "channels/list"
		if _, ok := paramsOfChannelMethods[method]; aboutOne && !ok {
			t.Errorf("%s is missing from paramsOfChannelMethods", method)
		}
	}
	if found != len(schemaNames) {
		t.Errorf("the server has %d methods of the extensions, schemaNames %d", found, len(schemaNames))
	}
}

// For an outsider a channel that is private, deleted, between two others, or never
// existed is the same byte for byte, for every method.
func TestHiddenChannelsAreNotThere(t *testing.T) {
	s := newTestServer(t)
	private := s.channel(t, `{"members":[{"principalId":"bob"}]}`)
	s.say(t, "ann", private, "one")
	deleted := s.channel(t, `{"visibility":"public"}`)
	s.call(t, "ann", "channels/delete", `{"channelId":"`+deleted+`"}`)
	s.call(t, "ann", "channels/publish", `{"to":"bob","parts":[{"type":"text","text":"x"}]}`)
	for method, more := range paramsOfChannelMethods {
		first := ""
		for _, id := range []string{
			"0192f1c0-0000-7000-8000-000000000000", private, deleted, "chan:direct:4e8e287eb6778132586a3591", "chan:direct:4e8e287eb6778132586a3592",
			"no/channel", "a b", strings.Repeat("x", 300), "urn:koine:channel:" + private,
		} {
			got := s.call(t, "eve", method, fmt.Sprintf(`{"channelId":%q%s}`, id, more))
			if first == "" {
				first = got
			}
			if !strings.Contains(got, `"code":-31101`) || got != first {
				t.Errorf("%s of %s: got %swant %s", method, id, got, first)
			}
		}
	}
}

// The extension has no invitations: an agent invited to a private channel is an
// outsider until it accepts, and sees a public one like everyone.
func TestInvitedAreOutsiders(t *testing.T) {
	s := newTestServer(t)
	private, public := s.channel(t, `{}`), s.channel(t, `{"visibility":"public"}`)
	for _, id := range []string{private, public} {
		by := channels.Caller{Principal: kg.Principal{ID: "agent://ann", Method: "key"}}
		if err := s.rooms.Members().Invite(t.Context(), by, channel.ID(id), "agent://ivy"); err != nil {
			t.Fatal(err)
		}
		// An error about limits would reveal the channel.
		if _, err := s.rooms.Update(t.Context(), by, channel.ID(id), channel.Update{ExpectedVersion: 1, Limits: &channel.Limits{MessageBytes: 1}}); err != nil {
			t.Fatal(err)
		}
	}
	for method, more := range paramsOfChannelMethods {
		got := s.call(t, "ivy", method, fmt.Sprintf(`{"channelId":%q%s}`, private, more))
		if want := s.call(t, "ivy", method, fmt.Sprintf(`{"channelId":%q%s}`, "0192f1c0-0000-7000-8000-000000000000", more)); got != want || !strings.Contains(got, `"code":-31101`) {
			t.Errorf("%s: got %swant %s", method, got, want)
		}
	}
	for _, params := range []string{`{}`, `{"visibility":"private"}`} {
		if got := s.call(t, "ivy", "channels/list", params); strings.Contains(got, private) || strings.Contains(got, public) != (params == `{}`) {
			t.Errorf("listed by %s: %s", params, got)
		}
	}
	if got := s.call(t, "ivy", "channels/get", `{"channelId":"`+public+`"}`); !strings.Contains(got, public) {
		t.Errorf("the public one: %s", got)
	}
}

// Values at the limits of a channel and a message (section 8) are accepted, values
// above are LimitExceededError.
func TestChannelLimits(t *testing.T) {
	s := newTestServer(t)
	id := s.channel(t, `{}`)
	pad := func(n int) string { return strings.Repeat("x", n) }
	const metadata, message = 16 << 10, 256 << 10
	for _, row := range []struct {
		method, params, at, past string
	}{
		{"channels/create", `{"name":%q}`, strings.Repeat("é", 128), pad(129)},
		{"channels/create", `{"metadata":{"m":%q}}`, pad(metadata - len(`{"m":""}`)), pad(metadata - len(`{"m":""}`) + 1)},
		{"channels/publish", `{"channelId":"` + id + `","parts":[{}],"idempotencyKey":%q}`, pad(128), pad(129)},
		{"channels/publish", `{"channelId":"` + id + `","parts":[{"t":%q}]}`, pad(message - len(`{"t":""}`)), pad(message - len(`{"t":""}`) + 1)},
		{"channels/publish", `{"channelId":"` + id + `","parts":[{}],"metadata":{"m":%q}}`, pad(metadata - len(`{"m":""}`)), pad(metadata - len(`{"m":""}`) + 1)},
	} {
		if got := s.call(t, "ann", row.method, fmt.Sprintf(row.params, row.at)); !strings.HasPrefix(got, "200 ") || !strings.Contains(got, `"result":`) {
			t.Errorf("%s at the bound: got %.300s", row.params, got)
		}
		if got := s.call(t, "ann", row.method, fmt.Sprintf(row.params, row.past)); !strings.HasPrefix(got, "200 ") || !strings.Contains(got, `"code":-31104,`) || !strings.Contains(got, `"reason":"LIMIT_EXCEEDED"`) {
			t.Errorf("%s past the bound: got %.300s", row.params, got)
		}
	}
	for _, row := range []struct {
		n    int
		want string
	}{{32, `"result":`}, {33, `"code":-31104,`}} {
		parts := strings.TrimSuffix(strings.Repeat(`{},`, row.n), ",")
		if got := s.call(t, "ann", "channels/publish", `{"channelId":"`+id+`","parts":[`+parts+`]}`); !strings.Contains(got, row.want) {
			t.Errorf("%d parts: got %.300s", row.n, got)
		}
	}
}

// The complete error table: each kg.Code for a method and for a stream.
func TestChannelErrorTable(t *testing.T) {
	var refuse error
	s := newTestServerWith(t, kg.Options{
		Governor: kg.Governor{Admit: func(context.Context, kg.Meta) error { return refuse }, AdmitRead: func(_ context.Context, _ kg.Principal, follow bool) error {
			if follow {
				return refuse
			}
			return nil
		}},
	}, sse.Options{}, a2a.Options{AdmitHistory: func(context.Context) error { return refuse }})
	id := s.channel(t, `{"visibility":"public"}`)
	for _, row := range []struct {
		code              kg.Code
		rpc, unary        int
		streamed, httpOf  int // of a stream
		reason, retryText string
	}{
		{kg.CodeChannelNotFound, -31101, 200, -31101, 404, "", ""},
		{kg.CodePermissionDenied, -31102, 200, -31102, 403, "", ""},
		{kg.CodeSourceForbidden, -31102, 200, -31102, 403, "", ""},
		{kg.CodeReserved, -31102, 200, -31102, 403, "", ""},
		{kg.CodeUnauthenticated, -31102, 401, -31102, 401, "", ""},
		{kg.CodeVersionConflict, -31103, 200, -31103, 409, "", ""},
		{kg.CodeIdempotencyConflict, -31103, 200, -31103, 409, "", ""},
		{kg.CodeRevisionConflict, -31103, 200, -31103, 409, "", ""},
		{kg.CodeLastOwner, -31103, 200, -31103, 409, "", ""},
		{kg.CodeNameTaken, -31103, 200, -31103, 409, "", ""},
		{kg.CodeScopeEnded, -31103, 200, -31103, 409, "", ""},
		{kg.CodeChannelClosed, -31103, 200, -31103, 409, "", ""},
		{"CHANNEL_CLOSED", -31103, 200, -31103, 409, "", ""},
		{kg.CodeMessageExpired, -31103, 200, -31103, 409, "", ""},
		{kg.CodeLimitExceeded, -31104, 200, -31104, 400, "", ""},
		{kg.CodeJudgeLimit, -31104, 200, -31104, 400, "", ""},
		{kg.CodeRateLimited, -31105, 200, -31105, 429, "", `,"retryAfterMs":1500`},
		{kg.CodeOverloaded, -31105, 429, -31105, 429, "", `,"retryAfterMs":1500`},
		{kg.CodeConstraintViolation, -32013, 200, -32013, 403, "", ""},
		{kg.CodeAlignmentViolation, -32013, 200, -32013, 403, "", ""},
		{kg.CodeInvalid, -32602, 200, -32602, 400, "", ""},
		{kg.CodeNotFound, -32602, 200, -32602, 400, "", ""},
		{kg.CodeGraphNotFound, -32602, 200, -32602, 400, "", ""},
		{kg.CodeScopeNotFound, -32602, 200, -32602, 400, "", ""},
		{kg.CodeNotMember, -32602, 200, -32602, 400, "", ""},
		{kg.CodeNoRecipient, -32602, 200, -32602, 400, "", ""},
		{kg.CodeCursorForeign, -32602, 200, -32602, 400, "", ""},
		{kg.CodeCursorGone, -32602, 200, -32602, 400, "", ""},
		{kg.CodePositionGone, -32602, 200, -32602, 400, "", ""},
		{kg.CodeRevisionGone, -32602, 200, -32602, 400, "", ""},
		{kg.CodeResync, -32603, 200, -31106, 400, "", ""},
		{kg.CodeAccessChanged, -32603, 200, -31106, 400, "RESYNC", ""},
		{kg.CodeTimeout, -32603, 200, -31106, 503, "", ""},
		{kg.CodeDiskFull, -32603, 200, -31106, 503, "", ""},
		{kg.CodeReadOnly, -32603, 200, -31106, 503, "", ""},
		{kg.CodeLogDamaged, -32603, 200, -31106, 503, "", ""},
		{kg.CodeOutcomeUnknown, -32603, 200, -31106, 503, "", ""},
		{kg.CodeClosed, -32603, 200, -31106, 503, "SERVER_SHUTDOWN", ""},
		{kg.CodeInternal, -32603, 200, -32603, 500, "", ""},
	} {
		refused := &kg.Error{Code: row.code, Message: "no"}
		if row.retryText != "" {
			refused.RetryAfter = 1500 * time.Millisecond
		}
		refuse = refused
		reason := row.reason
		if reason == "" {
			reason = string(row.code)
		}
		for _, method := range []string{"channels/publish", "channels/history", "channels/stream"} {
			rpc, status := row.rpc, row.unary
			if method == "channels/stream" {
				rpc, status = row.streamed, row.httpOf
			}
			head := fmt.Sprintf("%d application/json", status)
			if row.retryText != "" && status != 200 {
				head += " 2"
			}
			params := `{"channelId":"` + id + `"}`
			if method == "channels/publish" {
				params = `{"channelId":"` + id + `","parts":[{}]}`
			}
			got := s.call(t, "ann", method, params)
			if !strings.HasPrefix(got, head+"\n") || !strings.Contains(got, fmt.Sprintf(`"error":{"code":%d,`, rpc)) ||
				!strings.Contains(got, fmt.Sprintf(`"data":{"reason":%q,"domain":"koine"`, reason)) || !strings.Contains(got, row.retryText) {
				t.Errorf("%s of %s: got %swant %s, %d", row.code, method, got, head, rpc)
			}
		}
	}
}

// An exceeded rate is RateLimitError with HTTP 200 and a retry delay.
func TestRateOfPublishing(t *testing.T) {
	var refuse error
	s := newTestServerWith(t, kg.Options{Governor: kg.Governor{Admit: func(context.Context, kg.Meta) error { return refuse }}}, sse.Options{}, a2a.Options{})
	id := s.channel(t, `{}`)
	refuse = limited("updates")
	want := "200 application/json\n" + `{"jsonrpc":"2.0","id":1,"error":{"code":-31105,"message":"too many updates of this principal","data":{"reason":"RATE_LIMITED","domain":"koine","hint":"Wait.","retryAfterMs":1500}}}` + "\n"
	if got := s.call(t, "ann", "channels/publish", `{"channelId":"`+id+`","parts":[{}]}`); got != want {
		t.Errorf("got  %swant %s", got, want)
	}
	refuse = nil
	s.say(t, "ann", id, "again")
}

// Each row of the specification's table of errors (section 9), in each method that can
// return it: the JSON-RPC code, the reason and the HTTP status. TestChannelErrorTable
// has the table of all codes, and channels_refused.txtar the rest of the answers.
func TestErrorsOfTheSpecification(t *testing.T) {
	tooOften := &kg.Error{Code: kg.CodeRateLimited, Message: "too many histories", RetryAfter: time.Second}
	var histories error
	s := newTestServerWith(t, kg.Options{}, sse.Options{}, a2a.Options{AdmitHistory: func(context.Context) error { return histories }})
	member := `{"members":[{"principalId":"bob"},{"principalId":"mod","role":"moderator"}],"visibility":%q}`
	private, public := s.channel(t, fmt.Sprintf(member, "private")), s.channel(t, fmt.Sprintf(member, "public"))
	ann := channels.Caller{Principal: kg.Principal{ID: "agent://ann", Method: "key"}}
	make := func(d channel.Draft) string {
		t.Helper()
		c, err := s.rooms.Create(t.Context(), ann, d)
		if err != nil {
			t.Fatal(err)
		}
		return string(c.ID)
	}
	room := make(channel.Draft{Kind: channel.Room, Visibility: channel.Public}) // found by all, read by members
	paced := make(channel.Draft{Limits: channel.Limits{MessagesPerMinute: 1, Streams: 1}})
	closed := make(channel.Draft{})
	if _, err := s.rooms.CloseChannel(t.Context(), ann, channel.ID(closed), ""); err != nil {
		t.Fatal(err)
	}
	s.call(t, "ann", "channels/publish", `{"to":"bob","parts":[{}]}`)
	s.call(t, "ann", "channels/publish", `{"channelId":"`+private+`","idempotencyKey":"k","parts":[{}]}`)
	s.say(t, "ann", paced, "the one of this minute")
	s.follow(t, "ann", paced, "")
	const direct, absent = "chan:direct:4e8e287eb6778132586a3591", "0192f1c0-0000-7000-8000-000000000000"
	big := strings.Repeat("x", 300<<10)
	type call struct{ method, agent, channel, more string }
	all := func(agent, channel string, methods ...string) (list []call) {
		for _, method := range methods {
			list = append(list, call{method, agent, channel, paramsOfChannelMethods["channels/"+method]})
		}
		return list
	}
	var every []string
	for method := range paramsOfChannelMethods {
		every = append(every, strings.TrimPrefix(method, "channels/"))
	}
	for _, row := range []struct {
		name         string
		code, stream int // the HTTP status of a stream
		reason       string
		calls        []call
	}{
		{"ChannelNotFoundError: an unknown channel", -31101, 404, "CHANNEL_NOT_FOUND", all("ann", absent, every...)},
		{"ChannelNotFoundError: a private one, for others", -31101, 404, "CHANNEL_NOT_FOUND", all("eve", private, every...)},
		{"PermissionDeniedError: not a member", -31102, 403, "PERMISSION_DENIED", all("eve", public, "update", "delete", "addMember", "removeMember", "publish")},
		{"PermissionDeniedError: for who reads it only", -31102, 403, "PERMISSION_DENIED", all("eve", room, "update", "delete", "addMember", "removeMember", "publish", "history", "stream")},
		{"PermissionDeniedError: for owners", -31102, 403, "PERMISSION_DENIED", all("mod", private, "delete", "addMember", "removeMember")},
		{"PermissionDeniedError: a third member", -31102, 403, "PERMISSION_DENIED", all("ann", direct, "addMember", "removeMember", "update", "delete")},
		{"ConflictError: the version", -31103, 409, "VERSION_CONFLICT", []call{{"update", "ann", private, `,"expectedVersion":7`}}},
		{"ConflictError: the key", -31103, 409, "IDEMPOTENCY_CONFLICT", []call{{"publish", "ann", private, `,"idempotencyKey":"k","parts":[{"a":1}]`}}},
		{"ConflictError: the last owner", -31103, 409, "LAST_OWNER", []call{{"removeMember", "ann", private, `,"principalId":"ann"`}, {"addMember", "ann", private, `,"principalId":"ann","role":"member"`}}},
		{"ConflictError: closed", -31103, 409, "CHANNEL_CLOSED", []call{{"publish", "ann", closed, `,"parts":[{}]`}}},
		{"InvalidParamsError: filters", -32602, 400, "INVALID", []call{{"history", "ann", private, `,"sinceSequence":1,"sinceTimestamp":1`}}},
		{"InvalidParamsError: a cursor", -32602, 400, "CURSOR_FOREIGN", []call{{"history", "ann", private, `,"pageToken":"x"`}, {"list", "ann", "", `"pageToken":"x"`}}},
		{"InvalidParamsError: ahead", -32602, 400, "INVALID", []call{{"stream", "ann", private, `,"sinceSequence":9`}}},
		{"LimitExceededError: payload", -31104, 400, "LIMIT_EXCEEDED", []call{{"publish", "ann", private, `,"parts":[{"t":"` + big + `"}]`}}},
		{"LimitExceededError: metadata", -31104, 400, "LIMIT_EXCEEDED", []call{
			{"publish", "ann", private, `,"parts":[{}],"metadata":{"m":"` + big[:17<<10] + `"}`}, {"create", "ann", "", `"metadata":{"m":"` + big[:17<<10] + `"}`},
			{"update", "ann", private, `,"expectedVersion":1,"metadataPatch":{"set":{"m":"` + big[:17<<10] + `"}}`},
		}},
		{"LimitExceededError: streams", -31104, 400, "LIMIT_EXCEEDED", []call{{"stream", "ann", paced, ""}}},
		{"RateLimitError: publish", -31105, 429, "RATE_LIMITED", []call{{"publish", "ann", paced, `,"parts":[{}]`}}},
		{"RateLimitError: history", -31105, 429, "RATE_LIMITED", []call{{"history", "ann", private, ""}}},
	} {
		histories = nil
		if row.name == "RateLimitError: history" {
			histories = tooOften
		}
		for _, c := range row.calls {
			status, params := 200, `{`+c.more+`}`
			if c.method == "stream" {
				status = row.stream
			}
			if c.channel != "" {
				params = fmt.Sprintf(`{"channelId":%q%s}`, c.channel, c.more)
			}
			got := s.call(t, c.agent, "channels/"+c.method, params)
			if !strings.HasPrefix(got, fmt.Sprintf("%d application/json\n", status)) || !strings.Contains(got, fmt.Sprintf(`"error":{"code":%d,`, row.code)) ||
				!strings.Contains(got, fmt.Sprintf(`"data":{"reason":%q,"domain":"koine"`, row.reason)) || (row.code == -31105) != strings.Contains(got, `"retryAfterMs":`) {
				t.Errorf("%s, of %s by %s: got %.400s", row.name, c.method, c.agent, got)
			}
		}
	}
}
