package a2a

import (
	"context"

	"koine/a2a/internal/base"
	"koine/a2a/internal/v03"
	"koine/internal/delivery/push"
	"koine/internal/tasks"
)

// Notification encodes the body of a push notification in the form of its configuration
// (push.Options.Body).
func Notification(form string, t *tasks.Task, e *tasks.Event) ([]byte, error) {
	if NotifiesWhole(form) {
		return appendJSON(nil, version03.Task(t))
	}
	v, object := version1, any(nil)
	switch {
	case e == nil:
		object = v.Task(t)
	case e.Chunk != nil:
		object = v.Chunk(e.Chunk, base.Of(t))
	default:
		object = v.Status(e, base.Of(t))
	}
	return appendJSON(nil, v.Result(object))
}

// NotifiesWhole reports whether a form contains the whole task (push.Options.Whole), as
// in 0.3; 1.0 contains the event.
func NotifiesWhole(form string) bool { return form == v03.Form }

// errNoPush is the error of an agent without push notifications.
func errNoPush() *Error {
	return newError(codeNoPush, "Push notifications are not supported", details{})
}

// setPushAlong makes a request also set the push notification configuration of its message, if
// any.
func (h *Handler) setPushAlong(s *tasks.SendRequest, c *push.Config) (err error) {
	switch {
	case c == nil:
		return nil
	case h.push == nil:
		return errNoPush()
	}
	s.WriteAlso, err = h.push.PrepareConfig(*c)
	return err
}

// pushCall returns an error if there is no push service, or for tasks of other agents.
func (h *Handler) pushCall(ctx context.Context, c *call, id tasks.TaskID) error {
	if h.push == nil {
		return errNoPush()
	}
	_, err := h.readTask(ctx, c.caller, id, tasks.ReadOptions{})
	return err
}

// setPush handles CreateTaskPushNotificationConfig and
// tasks/pushNotificationConfig/set.
func (h *Handler) setPush(ctx context.Context, v version, c *call) (any, error) {
	p, err := readCall(c, v.ReadPush)
	if err != nil {
		return nil, err
	}
	if err := h.pushCall(ctx, c, p.Task); err != nil {
		return nil, err
	}
	set, err := h.push.Set(ctx, c.caller, *p)
	if err != nil {
		return nil, err
	}
	return v.Push(set), nil
}

// getPush handles GetTaskPushNotificationConfig and tasks/pushNotificationConfig/get.
func (h *Handler) getPush(ctx context.Context, v version, c *call) (any, error) {
	p, err := h.pushRef(ctx, v, c)
	if err != nil {
		return nil, err
	}
	config, err := h.push.Get(ctx, c.caller, p.Task, p.ID)
	if err != nil {
		return nil, err
	}
	return v.Push(config), nil
}

// listPush handles ListTaskPushNotificationConfigs and
// tasks/pushNotificationConfig/list.
func (h *Handler) listPush(ctx context.Context, v version, c *call) (any, error) {
	p, err := h.pushRef(ctx, v, c)
	if err != nil {
		return nil, err
	}
	list, err := h.push.List(ctx, c.caller, p.Task)
	if err != nil {
		return nil, err
	}
	return v.Pushes(list), nil
}

// deletePush handles DeleteTaskPushNotificationConfig and
// tasks/pushNotificationConfig/delete.
func (h *Handler) deletePush(ctx context.Context, v version, c *call) (any, error) {
	p, err := h.pushRef(ctx, v, c)
	if err != nil {
		return nil, err
	}
	return v.NoPush(), h.push.Delete(ctx, c.caller, p.Task, p.ID)
}

func (h *Handler) pushRef(ctx context.Context, v version, c *call) (*base.PushRef, error) {
	p, err := readCall(c, v.ReadPushRef)
	if err != nil {
		return nil, err
	}
	return p, h.pushCall(ctx, c, p.Task)
}
