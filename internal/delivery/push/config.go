package push

import (
	"koine/internal/delivery"
	"koine/internal/tasks"
)

// Limits of a configuration, in addition to those of a delivery.Target.
const (
	MaxConfigs = 10 // per task
	MaxIDBytes = 256
)

// Config is a push configuration: a web hook for the events of a task.
type Config struct {
	Task tasks.TaskID
	// ID is unique within the task; "" defaults to the id of the task.
	ID  string
	URL string // http or https
	// Token is sent with each notification, so that the receiver can verify the sender.
	Token string
	// Scheme and Credentials form the Authorization header.
	Scheme, Credentials string
	// Form is the format of the notifications, passed to Options.Body.
	Form string
}

// webhookTarget returns the target of the hook.
func (c *Config) webhookTarget() *delivery.Target {
	return &delivery.Target{URL: c.URL, Token: c.Token, Scheme: c.Scheme, Credentials: c.Credentials}
}

// withoutSecrets returns the part of a configuration that others than the creator of the
// task may see: it does not suffice to call the hook, or to pose as this server to it. The
// path of a URL may contain a key.
func (c *Config) withoutSecrets() *Config {
	return &Config{Task: c.Task, ID: c.ID, URL: c.webhookTarget().Origin(), Scheme: c.Scheme, Form: c.Form}
}

// validate validates the configuration.
func (c *Config) validate(allowPrivate bool) error {
	if err := delivery.CheckText("id", c.ID, MaxIDBytes); err != nil {
		return err
	}
	return c.webhookTarget().Check(allowPrivate)
}
