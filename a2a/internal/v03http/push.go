package v03http

import (
	"cmp"

	"koine/a2a/internal/base"
	"koine/a2a/internal/v03"
	"koine/internal/delivery/push"
	"koine/internal/tasks"
)

// pushConfig is a PushNotificationConfig.
type pushConfig struct {
	ID    string    `json:"id,omitempty"`
	URL   string    `json:"url"`
	Token string    `json:"token,omitempty"`
	Auth  *pushAuth `json:"authentication,omitempty"`
}

// pushAuth is an AuthenticationInfo.
type pushAuth struct {
	Schemes     []string `json:"schemes"`
	Credentials string   `json:"credentials,omitempty"`
}

// toConfig decodes a configuration; nil for nil. Notifications have the form of 0.3.
func (c *pushConfig) toConfig() *push.Config {
	if c == nil {
		return nil
	}
	out := &push.Config{ID: c.ID, URL: c.URL, Token: c.Token, Form: v03.Form}
	if c.Auth != nil {
		out.Scheme, out.Credentials = v03.SchemeOf(c.Auth.Schemes), c.Auth.Credentials
	}
	return out
}

// taskPush is a TaskPushNotificationConfig, named tasks/<id>/pushNotificationConfigs/<id>.
type taskPush struct {
	Name   string      `json:"name"`
	Config *pushConfig `json:"pushNotificationConfig"`
}

// ReadPush reads a TaskPushNotificationConfig, bare or in a
// CreateTaskPushNotificationConfigRequest; the task is that of the path.
func (Codec) ReadPush(params []byte) (*push.Config, error) {
	var p struct {
		Task     tasks.TaskID `json:"taskId"`
		ConfigID string       `json:"configId"`
		Bare     *pushConfig  `json:"pushNotificationConfig"`
		Config   *taskPush    `json:"config"`
	}
	if err := base.Decode(params, &p); err != nil {
		return nil, err
	}
	if p.Bare == nil && p.Config != nil {
		p.Bare = p.Config.Config
	}
	if p.Bare == nil {
		return nil, base.Required("pushNotificationConfig")
	}
	out := p.Bare.toConfig()
	out.Task, out.ID = p.Task, cmp.Or(out.ID, p.ConfigID)
	return out, nil
}

// ReadPushRef reads the ids of the path.
func (Codec) ReadPushRef(params []byte) (*base.PushRef, error) {
	var p struct {
		Task tasks.TaskID `json:"taskId"`
		ID   string       `json:"id"`
	}
	err := base.Decode(params, &p)
	return &base.PushRef{Task: p.Task, ID: p.ID}, err
}

// Push encodes a TaskPushNotificationConfig.
func (Codec) Push(c *push.Config) any {
	out := &taskPush{"tasks/" + string(c.Task) + "/pushNotificationConfigs/" + c.ID, &pushConfig{ID: c.ID, URL: c.URL, Token: c.Token}}
	if c.Scheme != "" {
		out.Config.Auth = &pushAuth{Schemes: []string{c.Scheme}}
	}
	return out
}

// Pushes encodes a ListTaskPushNotificationConfigResponse.
func (v Codec) Pushes(list []push.Config) any {
	out := []any{}
	for i := range list {
		out = append(out, v.Push(&list[i]))
	}
	return map[string]any{"configs": out}
}

// NoPush is an Empty.
func (Codec) NoPush() any { return struct{}{} }
