package v1

import (
	"koine/a2a/internal/base"
	"koine/internal/delivery/push"
	"koine/internal/tasks"
)

// Form is the form of push notifications: a StreamResponse.
const Form = "1.0"

// pushConfig is a TaskPushNotificationConfig.
type pushConfig struct {
	Task  tasks.TaskID `json:"taskId,omitempty"`
	ID    string       `json:"id,omitempty"`
	URL   string       `json:"url"`
	Token string       `json:"token,omitempty"`
	Auth  *pushAuth    `json:"authentication,omitempty"`
}

// pushAuth is an AuthenticationInfo.
type pushAuth struct {
	Scheme      string `json:"scheme"`
	Credentials string `json:"credentials,omitempty"`
}

// toConfig decodes a configuration; nil for nil.
func (c *pushConfig) toConfig() *push.Config {
	if c == nil {
		return nil
	}
	out := &push.Config{Task: c.Task, ID: c.ID, URL: c.URL, Token: c.Token, Form: Form}
	if c.Auth != nil {
		out.Scheme, out.Credentials = c.Auth.Scheme, c.Auth.Credentials
	}
	return out
}

// ReadPush reads a TaskPushNotificationConfig.
func (Codec) ReadPush(params []byte) (*push.Config, error) {
	var p pushConfig
	if err := base.Decode(params, &p); err != nil {
		return nil, err
	}
	if p.Task == "" {
		return nil, base.Required("taskId")
	}
	return p.toConfig(), nil
}

// ReadPushRef reads a GetTaskPushNotificationConfigRequest and similar params. There is
// one page.
func (Codec) ReadPushRef(params []byte) (*base.PushRef, error) {
	var p struct {
		Task tasks.TaskID `json:"taskId"`
		ID   string       `json:"id"`
	}
	if err := base.Decode(params, &p); err != nil {
		return nil, err
	}
	if p.Task == "" {
		return nil, base.Required("taskId")
	}
	return &base.PushRef{Task: p.Task, ID: p.ID}, nil
}

// Push encodes a TaskPushNotificationConfig.
func (Codec) Push(c *push.Config) any {
	out := &pushConfig{Task: c.Task, ID: c.ID, URL: c.URL, Token: c.Token}
	if c.Scheme != "" {
		out.Auth = &pushAuth{Scheme: c.Scheme}
	}
	return out
}

// Pushes encodes a ListTaskPushNotificationConfigsResponse.
func (v Codec) Pushes(list []push.Config) any {
	out := struct {
		Configs []any  `json:"configs"`
		Next    string `json:"nextPageToken"`
	}{Configs: []any{}}
	for i := range list {
		out.Configs = append(out.Configs, v.Push(&list[i]))
	}
	return out
}

// NoPush is an Empty.
func (Codec) NoPush() any { return struct{}{} }
