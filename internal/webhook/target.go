package webhook

import (
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"koine/kg"
)

// Bounds of a target.
const (
	MaxURLBytes         = 2048
	MaxTokenBytes       = 512
	MaxSchemeBytes      = 64
	MaxCredentialsBytes = 2048
)

// Target is where a hook is, and what shows it that the server is calling. All of it is
// a secret, the address too.
type Target struct {
	URL string `json:"url"` // http or https
	// Token goes with each call, so that who receives it knows it is meant.
	Token string `json:"token,omitempty"`
	// Scheme and Credentials are what the Authorization header is made of.
	Scheme      string `json:"scheme,omitempty"`
	Credentials string `json:"credentials,omitempty"`
}

// Check refuses what is not well formed, or past a bound.
//
// Errors: CodeInvalid; CodeLimitExceeded.
func (t *Target) Check(allowPrivate bool) error {
	for _, f := range []struct {
		field, text string
		most        int
	}{
		{"url", t.URL, MaxURLBytes}, {"token", t.Token, MaxTokenBytes},
		{"authentication.scheme", t.Scheme, MaxSchemeBytes}, {"authentication.credentials", t.Credentials, MaxCredentialsBytes},
	} {
		if err := CheckText(f.field, f.text, f.most); err != nil {
			return err
		}
	}
	if strings.Contains(t.Scheme, " ") || t.Scheme == "" && t.Credentials != "" {
		return kg.Errorf(kg.CodeInvalid, "is the name of a scheme, as Bearer").At("authentication.scheme")
	}
	return t.checkURL(allowPrivate)
}

// CheckText refuses what cannot stand in a header.
func CheckText(field, text string, most int) error {
	switch {
	case len(text) > most:
		return kg.Errorf(kg.CodeLimitExceeded, "at most %d bytes", most).At(field)
	case strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }):
		return kg.Errorf(kg.CodeInvalid, "is to be plain ASCII without control characters").At(field)
	}
	return nil
}

// checkURL says nothing of the address itself.
func (t *Target) checkURL(allowPrivate bool) error {
	u, err := url.Parse(t.URL)
	switch {
	case t.URL == "":
		return kg.Errorf(kg.CodeInvalid, "is required").At("url")
	case err != nil || !slices.Contains([]string{"http", "https"}, u.Scheme) || u.Hostname() == "":
		return kg.Errorf(kg.CodeInvalid, "is an address with http or https").At("url")
	case u.User != nil:
		return kg.Errorf(kg.CodeInvalid, "holds no name and password: say them in authentication").At("url")
	case allowPrivate:
		return nil
	}
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil && !isPublic(ip) || strings.EqualFold(u.Hostname(), "localhost") {
		e := kg.Errorf(kg.CodeInvalid, "is not an address of the public network").At("url")
		e.Hint = "A server that is to call private networks too is started with --allow-private-webhooks."
		return e
	}
	return nil
}

// Origin is as much of the address as can be shown to who named it.
func (t *Target) Origin() string {
	u, err := url.Parse(t.URL)
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

// setHeaders puts into a request what shows the server to the hook.
func (t *Target) setHeaders(h http.Header) {
	if t.Token != "" { // the name of 0.3, and that of the Go library
		h.Set("X-A2A-Notification-Token", t.Token)
		h.Set("A2A-Notification-Token", t.Token)
	}
	if t.Credentials != "" {
		h.Set("Authorization", t.Scheme+" "+t.Credentials)
	}
}
