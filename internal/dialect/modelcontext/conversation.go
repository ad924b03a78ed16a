package modelcontext

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"
)

type agentsArgs struct {
	Capability string `json:"capability,omitempty" jsonschema:"of its card, or the id or a tag of a skill"`
	pageArgs
}

type agent struct {
	ID          string `json:"id"`
	Name        string `json:"name,omitempty"`
	Presence    string `json:"presence,omitempty" jsonschema:"ONLINE, IDLE, BUSY or OFFLINE"`
	Description string `json:"description,omitempty"`
}

func (t tools) listAgents(ctx context.Context, a agentsArgs) (string, list[agent], error) {
	variables, err := a.pageVariables("capability", a.Capability)
	if err != nil {
		return "", list[agent]{}, err
	}
	var answer struct {
		Agents connection[struct {
			ID, Name     string
			Presence     *struct{ Status string }
			Registration *struct{ Description string }
		}]
	}
	const query = `query($capability: String, $first: Int, $after: Cursor) { agents(capability: $capability, first: $first, after: $after) { nodes { id name presence { status } registration { description } }` + pageInfo + ` } }`
	if err := t.GraphQL(ctx, query, variables, &answer); err != nil {
		return "", list[agent]{}, err
	}
	out := connection[agent]{PageInfo: answer.Agents.PageInfo}
	for _, n := range answer.Agents.Nodes {
		o := agent{ID: n.ID, Name: n.Name}
		if n.Presence != nil {
			o.Presence = n.Presence.Status
		}
		if n.Registration != nil {
			o.Description = n.Registration.Description
		}
		out.Nodes = append(out.Nodes, o)
	}
	return listOf(out, "No agent is known.", func(o *agent) string {
		line := shortAgent(o.ID)
		if o.Name != "" {
			line += " (" + o.Name + ")"
		}
		if o.Presence != "" {
			line += " " + strings.ToLower(o.Presence)
		}
		if o.Description != "" {
			line += ": " + o.Description
		}
		return line
	})
}

func shortAgent(id string) string { return strings.TrimPrefix(id, "agent://") }

type channelItem struct {
	ID       string `json:"id"`
	Name     string `json:"name,omitempty"`
	Topic    string `json:"topic,omitempty"`
	Messages int64  `json:"messages" jsonschema:"how many were ever published"`
}

func (t tools) listChannels(ctx context.Context, a pageArgs) (string, list[channelItem], error) {
	variables, err := a.pageVariables()
	if err != nil {
		return "", list[channelItem]{}, err
	}
	var answer struct{ Channels connection[channelItem] }
	if err := t.GraphQL(ctx, `query($first: Int, $after: Cursor) { channels(first: $first, after: $after) { nodes { id name topic messages: messageCount }`+pageInfo+` } }`, variables, &answer); err != nil {
		return "", list[channelItem]{}, err
	}
	return listOf(answer.Channels, "There is no channel that you may read. Agents are reached with say and ask all the same.", func(c *channelItem) string {
		line := c.ID
		if c.Name != "" {
			line += " (" + c.Name + ")"
		}
		if c.Topic != "" {
			line += ": " + c.Topic
		}
		return fmt.Sprintf("%s, %d messages", line, c.Messages)
	})
}

// message is a message in an answer of GraphQL and of tools.
type message struct {
	ID        string `json:"id"`
	Channel   string `json:"channel"`
	Sequence  int64  `json:"sequence" jsonschema:"its number in the channel"`
	Time      string `json:"time"`
	From      string `json:"from"`
	To        string `json:"to,omitempty" jsonschema:"an agent, a role, or everybody if absent"`
	Type      string `json:"type,omitempty" jsonschema:"REQUEST, RESPONSE, NOTIFY or BROADCAST"`
	Text      string `json:"text"`
	Cut       bool   `json:"cut,omitempty" jsonschema:"the text is longer; the tool query reads all of it"`
	Withheld  string `json:"withheld,omitempty" jsonschema:"why there is no text"`
	Request   string `json:"request,omitempty" jsonschema:"id of the message that it answers"`
	ReplyTo   string `json:"replyTo,omitempty" jsonschema:"id of the message that it replies to"`
	FactCount int    `json:"facts,omitempty" jsonschema:"how many facts came with it"`
}

const messageFields = `{ id channel: channelId sequence time from: authorId to: recipient type: messageType text withheld: withheldReason request: correlationId replyTo: replyToId facts: factCount }`

// formatLine returns a message as text.
func (m *message) formatLine() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s #%d %s", m.Time, m.Sequence, shortAgent(m.From))
	if m.To != "" {
		b.WriteString(" to " + shortAgent(m.To))
	}
	if m.Type != "" {
		b.WriteString(", " + strings.ToLower(m.Type))
	}
	fmt.Fprintf(&b, " (id %s", m.ID)
	for _, of := range [][2]string{{"answers", m.Request}, {"replies to", m.ReplyTo}, {"withheld:", m.Withheld}} {
		if of[1] != "" {
			b.WriteString(", " + of[0] + " " + of[1])
		}
	}
	b.WriteString("): " + m.Text)
	if m.Cut {
		fmt.Fprintf(&b, "…\n# cut; query { message(id: %q) { text } } has all", m.ID)
	}
	return b.String()
}

// listMessages returns the answer for a page of messages, whose long texts are cut.
func listMessages(c connection[message], none string, line func(*message) string) (string, list[message], error) {
	for i := range c.Nodes {
		m := &c.Nodes[i]
		m.Text, m.Cut = cutText(m.Text)
	}
	return listOf(c, none, line)
}

type readArgs struct {
	Channel string `json:"channel" jsonschema:"the id of a channel"`
	Since   int64  `json:"since,omitempty" jsonschema:"only messages after this sequence, the oldest first"`
	pageArgs
}

func (t tools) readChannel(ctx context.Context, a readArgs) (string, list[message], error) {
	variables, err := a.pageVariables("id", a.Channel, "order", "DESC")
	if err != nil {
		return "", list[message]{}, err
	}
	if a.Since != 0 {
		variables["since"], variables["order"] = a.Since, "ASC"
	}
	var answer struct {
		Channel struct{ Messages connection[message] }
	}
	const query = `query($id: ID!, $since: Long, $order: SortDirection!, $first: Int, $after: Cursor) { channel(id: $id) { messages(sinceSequence: $since, order: $order, first: $first, after: $after) { nodes ` + messageFields + pageInfo + ` } } }`
	if err := t.GraphQL(ctx, query, variables, &answer); err != nil {
		return "", list[message]{}, err
	}
	return listMessages(answer.Channel.Messages, "There are no messages.", (*message).formatLine)
}

// maxInboxScan bounds the messages that are read for one answer of inbox.
const maxInboxScan = 1000

type inboxArgs struct {
	All bool `json:"all,omitempty" jsonschema:"also those that you acknowledged or answered"`
	pageArgs
}

// listInbox lists messages to the caller. Read ones are left out here: the list of the server has all.
func (t tools) listInbox(ctx context.Context, a inboxArgs) (string, list[message], error) {
	variables, err := a.pageVariables()
	if err != nil {
		return "", list[message]{}, err
	}
	most := variables["first"].(int)
	variables["first"] = MaxListed
	var out connection[message]
	for scanned := 0; scanned < maxInboxScan && len(out.Nodes) < most; scanned += MaxListed {
		var answer struct {
			Inbox struct {
				Edges []struct {
					Cursor string
					Node   struct {
						message
						ReceiptStatus string
					}
				}
				PageInfo struct{ HasNextPage bool }
			}
		}
		if err := t.GraphQL(ctx, `query($first: Int, $after: Cursor) { inbox(first: $first, after: $after) { edges { cursor node `+strings.Replace(messageFields, "{", "{ receiptStatus", 1)+` } pageInfo { hasNextPage } } }`, variables, &answer); err != nil {
			return "", list[message]{}, err
		}
		out.PageInfo.HasNextPage = answer.Inbox.PageInfo.HasNextPage
		for i, e := range answer.Inbox.Edges {
			out.PageInfo.EndCursor = e.Cursor
			variables["after"] = e.Cursor
			if a.All || e.Node.ReceiptStatus != "READ" {
				out.Nodes = append(out.Nodes, e.Node.message)
			}
			if len(out.Nodes) == most {
				out.PageInfo.HasNextPage = out.PageInfo.HasNextPage || i < len(answer.Inbox.Edges)-1
				break
			}
		}
		if !answer.Inbox.PageInfo.HasNextPage {
			break
		}
	}
	return listMessages(out, "Nothing new.", func(m *message) string { return "in " + m.Channel + ", " + m.formatLine() })
}

type acknowledgeArgs struct {
	Channel  string   `json:"channel" jsonschema:"the id of their channel"`
	Messages []string `json:"messages" jsonschema:"ids of messages, at most 200"`
}

type done struct {
	Done int `json:"done" jsonschema:"how many"`
}

func (t tools) acknowledgeMessages(ctx context.Context, a acknowledgeArgs) (string, done, error) {
	input := map[string]any{"channelId": a.Channel, "messageIds": a.Messages}
	if err := t.GraphQL(ctx, `mutation($input: AcknowledgeMessagesInput!) { acknowledgeMessages(input: $input) { channel { id } } }`, map[string]any{"input": input}, &struct{}{}); err != nil {
		return "", done{}, err
	}
	return fmt.Sprintf("Acknowledged %d messages.", len(a.Messages)), done{len(a.Messages)}, nil
}

// addressArgs say where a message goes.
type addressArgs struct {
	To      string `json:"to,omitempty" jsonschema:"an agent such as chen, or role:reviewer in a channel"`
	Channel string `json:"channel,omitempty" jsonschema:"the id of a channel"`
	Text    string `json:"text"`
	Facts   string `json:"facts,omitempty" jsonschema:"lines of facts that come with it"`
	Why     string `json:"why,omitempty" jsonschema:"the reason of the facts"`
}

// messageInput returns a message as an input of GraphQL.
func (t tools) messageInput(ctx context.Context, a addressArgs) (map[string]any, error) {
	in := map[string]any{"parts": []any{map[string]any{"type": "text", "text": a.Text}}}
	switch {
	case a.Channel == "" && a.To == "":
		return nil, fmt.Errorf("to and channel are missing: a message goes to an agent or to a channel; the tools agents and channels list them")
	case a.Channel == "":
		in["to"] = a.To
	default:
		in["channelId"] = a.Channel
		if a.To != "" {
			in["recipient"] = a.To
		}
	}
	if a.Facts != "" {
		patches, err := t.patchesOf(ctx, a.Facts)
		if err != nil {
			return nil, err
		}
		in["patches"] = patches
	}
	if a.Why != "" {
		in["justification"] = a.Why
	}
	return in, nil
}

// published is the payload of a publication.
type published struct {
	Success                                             bool
	Message                                             *message
	VerificationStatus, VerificationDetails, ProposalID string
}

const publishedFields = `{ success message ` + messageFields + ` verificationStatus verificationDetails proposalId }`

type sent struct {
	ID       string `json:"id,omitempty" jsonschema:"of the message"`
	Channel  string `json:"channel,omitempty" jsonschema:"its id, for read"`
	Sequence int64  `json:"sequence,omitempty"`
	Proposal string `json:"proposal,omitempty" jsonschema:"the id of the proposal that it is held as, until others approve"`
}

func (p *published) describeSent() (string, sent, error) {
	switch {
	case p.ProposalID != "":
		return fmt.Sprintf("Held for review as proposal %s: %s", p.ProposalID, p.VerificationDetails), sent{Proposal: p.ProposalID}, nil
	case !p.Success || p.Message == nil:
		return "", sent{}, fmt.Errorf("%s: %s", p.VerificationStatus, p.VerificationDetails)
	}
	m := p.Message
	return fmt.Sprintf("Published as #%d in %s (id %s)", m.Sequence, m.Channel, m.ID), sent{ID: m.ID, Channel: m.Channel, Sequence: m.Sequence}, nil
}

type sayArgs struct {
	addressArgs
	ReplyTo string `json:"replyTo,omitempty" jsonschema:"id of a message"`
}

func (t tools) sayText(ctx context.Context, a sayArgs) (string, sent, error) {
	in, err := t.messageInput(ctx, a.addressArgs)
	if err != nil {
		return "", sent{}, err
	}
	if a.ReplyTo != "" {
		in["replyToId"] = a.ReplyTo
	}
	return t.publishMessage(ctx, in)
}

func (t tools) publishMessage(ctx context.Context, in map[string]any) (string, sent, error) {
	var answer struct{ PublishMessage published }
	if err := t.GraphQL(ctx, `mutation($input: PublishMessageInput!) { publishMessage(input: $input) `+publishedFields+` }`, map[string]any{"input": in}, &answer); err != nil {
		return "", sent{}, err
	}
	return answer.PublishMessage.describeSent()
}

type askArgs struct {
	addressArgs
	Seconds int    `json:"seconds,omitempty" jsonschema:"how long to wait, 1 to 60; 30 if absent"`
	Key     string `json:"key,omitempty" jsonschema:"of the answer before, to go on waiting for the same request"`
}

type askAnswer struct {
	sent
	Key      string   `json:"key" jsonschema:"to go on waiting: the same call with it"`
	Answered bool     `json:"answered"`
	Answer   *message `json:"answer,omitempty"`
}

// askAgent publishes a request and waits. Its key makes the request stand after the wait.
func (t tools) askAgent(ctx context.Context, a askArgs) (string, askAnswer, error) {
	in, err := t.messageInput(ctx, a.addressArgs)
	if err != nil {
		return "", askAnswer{}, err
	}
	if a.To != "" {
		in["recipient"] = a.To
	}
	out := askAnswer{Key: a.Key}
	if out.Key == "" {
		out.Key = uuid.NewString()
	}
	in["idempotencyKey"], in["messageType"] = out.Key, "REQUEST"
	input := map[string]any{"message": in}
	if a.Seconds != 0 {
		input["timeoutSeconds"] = a.Seconds
	}
	var answer struct {
		Ask struct {
			Publication published
			Response    *message
		}
	}
	if err := t.GraphQL(ctx, `mutation($input: AskInput!) { ask(input: $input) { publication `+publishedFields+` response `+messageFields+` } }`, map[string]any{"input": input}, &answer); err != nil {
		return "", out, err
	}
	text, publication, err := answer.Ask.Publication.describeSent()
	if err != nil {
		return "", out, err
	}
	out.sent, out.Answer, out.Answered = publication, answer.Ask.Response, answer.Ask.Response != nil
	if out.Answered {
		return out.Answer.formatLine(), out, nil
	}
	return fmt.Sprintf("%s. There is no answer yet: it comes to your inbox, or call again with key %q to go on waiting.", text, out.Key), out, nil
}

type answerArgs struct {
	Request string `json:"request" jsonschema:"id of the message to answer"`
	Text    string `json:"text"`
	Facts   string `json:"facts,omitempty" jsonschema:"lines of facts that come with it"`
	Why     string `json:"why,omitempty" jsonschema:"the reason of the facts"`
}

// answerRequest publishes a response to the author of a request, and acknowledges the request.
func (t tools) answerRequest(ctx context.Context, a answerArgs) (string, sent, error) {
	var request struct{ Message message }
	if err := t.GraphQL(ctx, `query($id: ID!) { message(id: $id) `+messageFields+` }`, map[string]any{"id": a.Request}, &request); err != nil {
		return "", sent{}, err
	}
	in, err := t.messageInput(ctx, addressArgs{To: request.Message.From, Channel: request.Message.Channel, Text: a.Text, Facts: a.Facts, Why: a.Why})
	if err != nil {
		return "", sent{}, err
	}
	in["messageType"], in["correlationId"] = "RESPONSE", a.Request
	text, out, err := t.publishMessage(ctx, in)
	if err != nil {
		return "", out, err
	}
	_, _, err = t.acknowledgeMessages(ctx, acknowledgeArgs{request.Message.Channel, []string{a.Request}})
	return text, out, err
}
