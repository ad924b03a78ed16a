package a2a

import (
	"cmp"
	"context"
	"strings"

	"koine/a2a/internal/base"
	"koine/a2a/internal/v03"
	"koine/a2a/internal/v03http"
	"koine/a2a/internal/v1"
	"koine/internal/caller"
	"koine/internal/tasks"
	"koine/kg"
)

// version is a version of base A2A.
type version struct {
	name string // as in A2A-Version
	base.Codec
}

var (
	version1  = version{"1.0", v1.Codec{}}
	version03 = version{"0.3", v03.Codec{}}
	// version03HTTP is 0.3 over HTTP+JSON, which has other JSON than over JSON-RPC: that of
	// its protocol buffers.
	version03HTTP = version{"0.3", v03http.Codec{}}
)

// coreOperation is an operation of base A2A. Exactly one of unary and stream is set.
type coreOperation struct {
	name, name03 string // the method of 1.0 and of 0.3, "" for none
	family       family
	unary        func(context.Context, version, *call) (any, error)
	stream       func(context.Context, version, *call) (*opening, error)
}

// coreOperations returns the operations of base A2A (A2A 1.0, section 3.1). They address
// the handler's agent. Each binding has a table over them.
func (h *Handler) coreOperations() []coreOperation {
	return []coreOperation{
		{name: "SendMessage", name03: "message/send", family: coreCalls, unary: h.sendMessage},
		{name: "SendStreamingMessage", name03: "message/stream", family: coreCalls, stream: h.streamMessage},
		{name: "GetTask", name03: "tasks/get", family: coreCalls, unary: h.getTask},
		{name: "ListTasks", family: coreCalls, unary: h.listTasks},
		{name: "CancelTask", name03: "tasks/cancel", family: coreCancel, unary: h.cancelTask},
		{name: "SubscribeToTask", name03: "tasks/resubscribe", family: coreCalls, stream: h.subscribeToTask},

		{name: "CreateTaskPushNotificationConfig", name03: "tasks/pushNotificationConfig/set", family: coreCalls, unary: h.setPush},
		{name: "GetTaskPushNotificationConfig", name03: "tasks/pushNotificationConfig/get", family: coreCalls, unary: h.getPush},
		{name: "ListTaskPushNotificationConfigs", name03: "tasks/pushNotificationConfig/list", family: coreCalls, unary: h.listPush},
		{name: "DeleteTaskPushNotificationConfig", name03: "tasks/pushNotificationConfig/delete", family: coreCalls, unary: h.deletePush},

		{name: "GetExtendedAgentCard", name03: "agent/getAuthenticatedExtendedCard", family: coreCalls, unary: h.extendedCard},
	}
}

// methodOf returns the operation as a method of a version.
func (o *coreOperation) methodOf(v version) method {
	m := method{family: o.family}
	if o.unary != nil {
		m.unary = func(ctx context.Context, c *call) (any, error) {
			if err := v.checkVersion(c); err != nil {
				return nil, err
			}
			return o.unary(ctx, v, c)
		}
		return m
	}
	m.stream = func(ctx context.Context, c *call) (*opening, error) {
		if err := v.checkVersion(c); err != nil {
			return nil, err
		}
		return o.stream(ctx, v, c)
	}
	return m
}

// coreMethods returns the methods of base A2A over JSON-RPC, in both versions (A2A 1.0,
// section 9; A2A 0.3, section 7).
func (h *Handler) coreMethods() map[string]method {
	table := map[string]method{}
	for _, o := range h.coreOperations() {
		table[o.name] = o.methodOf(version1)
		if o.name03 != "" {
			table[o.name03] = o.methodOf(version03)
		}
	}
	return table
}

// checkVersion returns an error if the request names another version. Without A2A-Version, the
// method decides (docs/reference/a2a.md).
func (v version) checkVersion(c *call) error {
	requested := cmp.Or(c.header.Get("A2A-Version"), c.query.Get("A2A-Version"))
	if requested == "" {
		return nil
	}
	// The patch number has no meaning on the wire (A2A 1.0, section 3.6).
	words := strings.SplitN(strings.TrimSpace(requested), ".", 3)
	if len(words) == 3 {
		words = words[:2]
	}
	switch asked := strings.Join(words, "."); {
	case asked == v.name || asked == strings.TrimSuffix(v.name, ".0"):
		return nil
	case asked != version1.name && asked != version03.name && asked != "1":
	case c.byPath:
		return newError(codeVersion, "the path is that of A2A "+v.name+", not "+clipText(requested), details{
			Supported: []string{v.name}, Hint: "Use the path of the version, or omit A2A-Version.",
		})
	default:
		return otherVersion(c.method, v)
	}
	return newError(codeVersion, "A2A "+clipText(requested)+" is not supported", details{
		Supported: []string{version1.name, version03.name}, Hint: "Set A2A-Version to 1.0 or 0.3.",
	})
}

// For returns the endpoint of another agent, with the methods of base A2A only:
// messages sent there go to that agent.
func (h *Handler) For(agent kg.AgentID) *Handler {
	other := &Handler{store: h.store, tasks: h.tasks, push: h.push, agent: agent, streams: h.streams, options: h.options, log: h.log}
	other.table = other.coreMethods()
	return other
}

// paramsObject returns the params of a call, which must be an object.
func (c *call) paramsObject() ([]byte, error) {
	switch {
	case isAbsent(c.params):
		return []byte("{}"), nil
	case c.params[0] != '{':
		return nil, kg.Errorf(kg.CodeInvalid, "must be an object, not %s", kindOf(c.params)).At("params")
	}
	return c.params, nil
}

// readCall decodes the params of a call.
func readCall[T any](c *call, read func([]byte) (T, error)) (out T, err error) {
	params, err := c.paramsObject()
	if err != nil {
		return out, err
	}
	return read(params)
}

// readSending decodes a message and returns the request for the domain.
func (h *Handler) readSending(v version, c *call) (*base.Send, tasks.SendRequest, error) {
	p, err := readCall(c, v.ReadSend)
	if err != nil {
		return nil, tasks.SendRequest{}, err
	}
	p.Message.Hops = hopsOf(c.header)
	out := tasks.SendRequest{To: h.agent, Message: p.Message, Task: p.Task, Context: p.Context}
	return p, out, h.setPushAlong(&out, p.Push)
}

// sendMessage handles SendMessage and message/send.
func (h *Handler) sendMessage(ctx context.Context, v version, c *call) (any, error) {
	p, sending, err := h.readSending(v, c)
	if err != nil {
		return nil, err
	}
	sent, err := h.tasks.Send(ctx, c.caller, sending)
	switch {
	case err != nil:
		return nil, err
	case sent.Answer != nil:
		return v.Result(v.Message(sent.Answer, base.About{Context: p.Context})), nil
	}
	t := sent.Task
	reading := tasks.ReadOptions{History: p.History, Artifacts: true, Partial: true} // the message is sent
	if p.Wait {
		wait, cancel := context.WithTimeout(ctx, h.options.MaxSendWait)
		defer cancel()
		t, err = h.tasks.Wait(wait, c.caller, t, reading)
	} else if p.History >= 0 {
		t, err = h.tasks.Get(ctx, c.caller, t.ID, reading)
	}
	if err != nil {
		return nil, err
	}
	return v.Result(v.Task(t)), nil
}

// getTask handles GetTask and tasks/get.
func (h *Handler) getTask(ctx context.Context, v version, c *call) (any, error) {
	p, err := readCall(c, v.ReadTask)
	if err != nil {
		return nil, err
	}
	t, err := h.readTask(ctx, c.caller, p.ID, tasks.ReadOptions{History: p.History, Artifacts: true})
	if err != nil {
		return nil, err
	}
	return v.Task(t), nil
}

// readTask reads a task of the handler's agent; other tasks are not found.
func (h *Handler) readTask(ctx context.Context, by caller.Caller, id tasks.TaskID, r tasks.ReadOptions) (*tasks.Task, error) {
	t, err := h.tasks.Get(ctx, by, id, r)
	if err == nil && t.Handler != h.agent {
		return nil, kg.Errorf(kg.CodeTaskNotFound, "the task does not exist").At("id")
	}
	return t, err
}

// cancelTask handles CancelTask and tasks/cancel.
func (h *Handler) cancelTask(ctx context.Context, v version, c *call) (any, error) {
	p, err := readCall(c, v.ReadTask)
	if err != nil {
		return nil, err
	}
	if _, err := h.readTask(ctx, c.caller, p.ID, tasks.ReadOptions{}); err != nil {
		return nil, err
	}
	t, err := h.tasks.Cancel(ctx, c.caller, p.ID)
	if err != nil {
		return nil, err
	}
	return v.Task(t), nil
}

// taskPage is a ListTasksResponse.
type taskPage struct {
	Tasks    []any  `json:"tasks"`
	Next     string `json:"nextPageToken"`
	PageSize int    `json:"pageSize"`
	Total    int    `json:"totalSize"`
}

// listTasks handles ListTasks.
func (h *Handler) listTasks(ctx context.Context, v version, c *call) (any, error) {
	p, err := readCall(c, v.ReadList)
	if err != nil {
		return nil, err
	}
	q := tasks.Query{
		Context: p.Context, Handler: h.agent, Since: p.Since, ByStatus: true, First: p.First, After: p.After,
		Reading: tasks.ReadOptions{History: p.History, Artifacts: p.Artifacts},
	}
	if p.State != "" {
		q.States = []tasks.State{p.State}
	}
	page, err := h.tasks.List(ctx, c.caller, q)
	if kg.CodeOf(err) == kg.CodeCursorForeign {
		return nil, kg.AsError(err).At("pageToken")
	}
	if err != nil {
		return nil, err
	}
	out := taskPage{Tasks: []any{}, Next: page.Next, PageSize: cmp.Or(p.First, tasks.DefaultPage), Total: page.Total}
	for i := range page.Tasks {
		out.Tasks = append(out.Tasks, v.Task(&page.Tasks[i]))
	}
	return out, nil
}

// streamMessage handles SendStreamingMessage and message/stream.
func (h *Handler) streamMessage(_ context.Context, v version, c *call) (*opening, error) {
	p, sending, err := h.readSending(v, c)
	if err != nil {
		return nil, err
	}
	by := c.caller
	koine, order := h.subscriptionIn(&sending.Message)
	if order != nil && p.Task == "" {
		return &opening{ids: true, establish: func(ctx context.Context) (*feed, error) {
			return koine.followSubscription(ctx, h, v, by, sending, order)
		}}, nil
	}
	return &opening{ids: true, establish: func(ctx context.Context) (*feed, error) {
		// For an existing task the stream starts before the message is sent, so that it
		// misses no event.
		var before *tasks.Task
		var st *tasks.Stream
		if p.Task != "" {
			if before, st, err = h.tasks.Follow(ctx, by, p.Task, tasks.ReadOptions{History: p.History, Artifacts: true, Partial: true}); err != nil {
				return nil, err
			}
		}
		sent, err := h.tasks.Send(ctx, by, sending)
		switch {
		case err != nil:
			if st != nil {
				st.Close()
			}
			return nil, err
		case sent.Answer != nil:
			return answerFeed(v.Result(v.Message(sent.Answer, base.About{Context: p.Context}))), nil
		case st != nil:
			return h.taskFeed(v, before, st), nil
		}
		if st, err = h.tasks.FollowFrom(ctx, by, sent.Task.ID, h.tasks.PositionAfter(sent.Task)); err != nil {
			return nil, err
		}
		if p.History >= 0 {
			sent.Task.History = sent.Task.History[max(len(sent.Task.History)-p.History, 0):]
		}
		return h.taskFeed(v, sent.Task, st), nil
	}}, nil
}

// subscribeToTask handles SubscribeToTask and tasks/resubscribe: the task first, then
// its events; with a Last-Event-ID, events only.
func (h *Handler) subscribeToTask(_ context.Context, v version, c *call) (*opening, error) {
	p, err := readCall(c, v.ReadTask)
	if err != nil {
		return nil, err
	}
	by, last := c.caller, c.header.Get(lastEventID)
	return &opening{ids: true, establish: func(ctx context.Context) (*feed, error) {
		t, err := h.readTask(ctx, by, p.ID, tasks.ReadOptions{})
		if err != nil {
			return nil, err
		}
		if last != "" {
			after, err := h.store.ParsePosition(last)
			if err != nil {
				return nil, kg.AsError(err).At("Last-Event-ID")
			}
			st, err := h.tasks.FollowFrom(ctx, by, p.ID, after)
			if err != nil {
				return nil, err
			}
			return h.taskFeed(v, nil, st), nil
		}
		if t.Status.State.Ended() {
			return nil, kg.Errorf(kg.CodeTaskEnded, "the task has ended: it is %s", t.Status.State).At("id")
		}
		now, st, err := h.tasks.Follow(ctx, by, p.ID, tasks.ReadAll)
		if err != nil {
			return nil, err
		}
		return h.taskFeed(v, now, st), nil
	}}, nil
}
