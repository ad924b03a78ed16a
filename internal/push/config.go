package push

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"koine/internal/tasks"
	"koine/kg"
)

// Bounds of a configuration.
const (
	MaxConfigs          = 10 // of a task
	MaxIDBytes          = 256
	MaxURLBytes         = 2048
	MaxTokenBytes       = 512
	MaxSchemeBytes      = 64
	MaxCredentialsBytes = 2048
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

// check refuses what is not well formed, or past a bound.
func (c *Config) check(allowPrivate bool) error {
	for _, f := range []struct {
		field, text string
		most        int
	}{
		{"id", c.ID, MaxIDBytes}, {"url", c.URL, MaxURLBytes}, {"token", c.Token, MaxTokenBytes},
		{"authentication.scheme", c.Scheme, MaxSchemeBytes}, {"authentication.credentials", c.Credentials, MaxCredentialsBytes},
	} {
		switch {
		case len(f.text) > f.most:
			return kg.Errorf(kg.CodeLimitExceeded, "at most %d bytes", f.most).At(f.field)
		case strings.ContainsFunc(f.text, func(r rune) bool { return r < ' ' || r > '~' }):
			return kg.Errorf(kg.CodeInvalid, "is to be plain ASCII without control characters").At(f.field)
		}
	}
	if strings.Contains(c.Scheme, " ") || c.Scheme == "" && c.Credentials != "" {
		return kg.Errorf(kg.CodeInvalid, "is the name of a scheme, as Bearer").At("authentication.scheme")
	}
	return c.checkURL(allowPrivate)
}

// checkURL says nothing of the address itself, which may be a secret.
func (c *Config) checkURL(allowPrivate bool) error {
	u, err := url.Parse(c.URL)
	switch {
	case c.URL == "":
		return kg.Errorf(kg.CodeInvalid, "is required").At("url")
	case err != nil || !slices.Contains([]string{"http", "https"}, u.Scheme) || u.Hostname() == "":
		return kg.Errorf(kg.CodeInvalid, "is an address with http or https").At("url")
	case u.User != nil:
		return kg.Errorf(kg.CodeInvalid, "holds no name and password: say them in authentication").At("url")
	case allowPrivate:
		return nil
	}
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil && !public(ip) || strings.EqualFold(u.Hostname(), "localhost") {
		return kg.Errorf(kg.CodeInvalid, "is not an address of the public network").At("url")
	}
	return nil
}
