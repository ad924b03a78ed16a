package main

import (
	"cmp"
	"net/http"
	"path"
	"slices"
	"strings"

	"koine/channels"
	"koine/channels/channel"
	"koine/cmd/koine/internal/cli"
	"koine/internal/dialect/agentchat"
	"koine/internal/httpd"
)

// chatFlags configure AgentChat.
type chatFlags struct {
	AgentchatPrefix          string `help:"Path prefix of AgentChat, rooms for agents over REST and a WebSocket. / is refused, because the hub has its paths." default:"/agentchat" placeholder:"PATH" name:"agentchat-prefix"`
	AgentchatRegistration    string `help:"Who may register an agent and get a key over AgentChat: open (everybody, 10 an hour from one address), keys (callers with the role admin or registrar), or off (default: open in open mode, otherwise keys)." placeholder:"WHO" completes:"open,keys,off" name:"agentchat-registration"`
	AgentchatPublicDirectory bool   `help:"Let callers without a key read the names, capabilities, presence and reputation of agents over AgentChat." name:"agentchat-public-directory"`
}

// chatPrefix returns the path prefix of AgentChat.
func (f *chatFlags) chatPrefix(rest string) (string, error) {
	prefix := strings.TrimSuffix(f.AgentchatPrefix, "/")
	switch {
	case f.AgentchatPrefix == "/":
		return "", cli.Usagef("--agentchat-prefix /: /agents is used by the hub: choose a path such as /agentchat")
	case len(prefix) < 2 || prefix[0] != '/' || path.Clean(prefix) != prefix || strings.ContainsFunc(prefix, notInPath):
		return "", cli.Usagef("--agentchat-prefix %s: must be a path such as /agentchat, of letters, digits, and - . _ ~", f.AgentchatPrefix)
	}
	first := firstElement(prefix)
	if slices.Contains(reservedPaths, first) || rest != "" && firstElement(rest) == first || rest == "" && slices.Contains([]string{"agents", "messages", "tasks", "ws"}, first) {
		return "", cli.Usagef("--agentchat-prefix %s: /%s is used by another endpoint", f.AgentchatPrefix, first)
	}
	return prefix, nil
}

// registration returns who may register an agent.
func (f *chatFlags) registration(open bool) (agentchat.Registration, error) {
	usual := agentchat.RegisterKeys
	if open {
		usual = agentchat.RegisterOpen
	}
	mode := cmp.Or(agentchat.Registration(f.AgentchatRegistration), usual)
	switch mode {
	case agentchat.RegisterOpen, agentchat.RegisterKeys, agentchat.RegisterOff:
		return mode, nil
	}
	return "", cli.Usagef("--agentchat-registration %s: must be open, keys or off", mode)
}

// chatTier is the tier of agents that registered over AgentChat, unless --tier says
// otherwise. The protocol bounds the content of a message itself; its wrapping is not
// counted against that bound.
var chatTier = channels.Tier{Name: channels.Free.Name, MessagesPerMinute: channels.Free.MessagesPerMinute, Streams: channels.Free.Streams, Channels: channels.Free.Channels, MessageBytes: channel.MaxMessageBytes}

// chatURL returns the public URL of AgentChat, "" if the server's is not known.
func chatURL(public, prefix string) string {
	if public == "" {
		return ""
	}
	return strings.TrimRight(public, "/") + prefix
}

// handleChat registers the routes of AgentChat.
func handleChat(server *httpd.Server, prefix string, public bool, h http.Handler) {
	h = http.StripPrefix(prefix, h)
	server.HandleSocket(prefix+"/", httpd.Framed, h)
	server.HandleOptional("POST "+prefix+"/agents/register", httpd.Framed, h)
	if public {
		for _, path := range []string{"/agents", "/agents/{id}", "/capabilities"} {
			server.HandleOptional("GET "+prefix+path, httpd.Framed, h)
		}
	}
	server.HideQueryToken(prefix + "/ws")
}
