package v03

import (
	"cmp"
	"strings"

	"koine/a2a/internal/base"
	"koine/internal/delivery/push"
	"koine/internal/tasks"
)

// Form is the form of push notifications: the Task itself.
const Form = "0.3"

// taskPush is a TaskPushNotificationConfig.
type taskPush struct {
	Task   tasks.TaskID `json:"taskId"`
	Config *pushConfig  `json:"pushNotificationConfig"`
}

// pushConfig is a PushNotificationConfig.
type pushConfig struct {
	ID    string    `json:"id,omitempty"`
	URL   string    `json:"url"`
	Token string    `json:"token,omitempty"`
	Auth  *pushAuth `json:"authentication,omitempty"`
}

// pushAuth is a PushNotificationAuthenticationInfo.
type pushAuth struct {
	Schemes     []string `json:"schemes"`
	Credentials string   `json:"credentials,omitempty"`
}

// toConfig decodes a configuration; nil for nil.
func (c *pushConfig) toConfig() *push.Config {
	if c == nil {
		return nil
	}
	out := &push.Config{ID: c.ID, URL: c.URL, Token: c.Token, Form: Form}
	if c.Auth != nil {
		out.Scheme, out.Credentials = SchemeOf(c.Auth.Schemes), c.Auth.Credentials
	}
	return out
}

// SchemeOf returns the first Bearer or Basic of several schemes, else the first.
func SchemeOf(schemes []string) (out string) {
	for _, scheme := range schemes {
		if strings.EqualFold(scheme, "Bearer") || strings.EqualFold(scheme, "Basic") {
			return scheme
		}
		out = cmp.Or(out, scheme)
	}
	return out
}

// ReadPush reads a TaskPushNotificationConfig.
func (Codec) ReadPush(params []byte) (*push.Config, error) {
	var p taskPush
	if err := base.Decode(params, &p); err != nil {
		return nil, err
	}
	switch {
	case p.Task == "":
		return nil, base.Required("taskId")
	case p.Config == nil:
		return nil, base.Required("pushNotificationConfig")
	}
	out := p.Config.toConfig()
	out.Task = p.Task
	return out, nil
}

// ReadPushRef reads GetTaskPushNotificationConfigParams and similar params.
func (Codec) ReadPushRef(params []byte) (*base.PushRef, error) {
	var p struct {
		Task tasks.TaskID `json:"id"`
		ID   string       `json:"pushNotificationConfigId"`
	}
	if err := base.Decode(params, &p); err != nil {
		return nil, err
	}
	if p.Task == "" {
		return nil, base.Required("id")
	}
	return &base.PushRef{Task: p.Task, ID: p.ID}, nil
}

// Push encodes a TaskPushNotificationConfig.
func (Codec) Push(c *push.Config) any {
	out := &taskPush{c.Task, &pushConfig{ID: c.ID, URL: c.URL, Token: c.Token}}
	if c.Scheme != "" {
		out.Config.Auth = &pushAuth{Schemes: []string{c.Scheme}}
	}
	return out
}

// Pushes encodes a list of them.
func (v Codec) Pushes(list []push.Config) any {
	out := []any{}
	for i := range list {
		out = append(out, v.Push(&list[i]))
	}
	return out
}

// NoPush is null.
func (Codec) NoPush() any { return nil }
