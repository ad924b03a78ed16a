package push

import (
	"koine/internal/tasks"
	"koine/internal/webhook"
)

// Bounds of a configuration, beside those of a webhook.Target.
const (
	MaxConfigs = 10 // of a task
	MaxIDBytes = 256
)

// Config is a web hook for what happens to a task.
type Config struct {
	Task tasks.TaskID
	// ID is unique within the task; "" becomes that of the task.
	ID  string
	URL string // http or https
	// Token goes with each notification, so that who receives it knows it is meant.
	Token string
	// Scheme and Credentials are what the Authorization header is made of.
	Scheme, Credentials string
	// Form is that in which the notifications are written, of Options.Body's choice.
	Form string
}

// webhookTarget is where the hook is.
func (c *Config) webhookTarget() *webhook.Target {
	return &webhook.Target{URL: c.URL, Token: c.Token, Scheme: c.Scheme, Credentials: c.Credentials}
}

// validate refuses what is not well formed, or past a bound.
func (c *Config) validate(allowPrivate bool) error {
	if err := webhook.CheckText("id", c.ID, MaxIDBytes); err != nil {
		return err
	}
	return c.webhookTarget().Check(allowPrivate)
}
