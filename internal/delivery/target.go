package delivery

import (
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"koine/kg"
)

// Limits of a target.
const (
	MaxURLBytes         = 2048
	MaxTokenBytes       = 512
	MaxSchemeBytes      = 64
	MaxCredentialsBytes = 2048
)

// Target is the URL of a hook and the credentials for it. All of it is secret,
// including the URL.
type Target struct {
	URL string `json:"url"` // http or https
	// Token is sent with each call, so that the receiver can verify the sender.
	Token string `json:"token,omitempty"`
	// Scheme and Credentials form the Authorization header.
	Scheme      string `json:"scheme,omitempty"`
	Credentials string `json:"credentials,omitempty"`
}

// Check validates the target.
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
		return kg.Errorf(kg.CodeInvalid, "must be the name of a scheme, such as Bearer").At("authentication.scheme")
	}
	return t.checkURL(allowPrivate)
}

// CheckText validates a header value.
func CheckText(field, text string, most int) error {
	switch {
	case len(text) > most:
		return kg.Errorf(kg.CodeLimitExceeded, "has more than %d bytes", most).At(field)
	case strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }):
		return kg.Errorf(kg.CodeInvalid, "must be ASCII without control characters").At(field)
	}
	return nil
}

// checkURL validates the URL. Its errors do not reveal it.
func (t *Target) checkURL(allowPrivate bool) error {
	u, err := url.Parse(t.URL)
	switch {
	case t.URL == "":
		return kg.Errorf(kg.CodeInvalid, "is required").At("url")
	case err != nil || !slices.Contains([]string{"http", "https"}, u.Scheme) || u.Hostname() == "":
		return kg.Errorf(kg.CodeInvalid, "must be an http or https URL").At("url")
	case u.User != nil:
		return kg.Errorf(kg.CodeInvalid, "must not contain user information: use authentication").At("url")
	case allowPrivate:
		return nil
	}
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil && !isPublic(ip) || strings.EqualFold(u.Hostname(), "localhost") {
		e := kg.Errorf(kg.CodeInvalid, "is not a public address").At("url")
		e.Hint = "Start the server with --allow-private-webhooks to allow private networks."
		return e
	}
	return nil
}

// Origin returns the scheme and the host of the URL, which the owner of the hook may
// see.
func (t *Target) Origin() string {
	u, err := url.Parse(t.URL)
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

// setHeaders sets the headers that authenticate the server to the hook.
func (t *Target) setHeaders(h http.Header) {
	if t.Token != "" { // the header of A2A 0.3, and that of the Go library
		h.Set("X-A2A-Notification-Token", t.Token)
		h.Set("A2A-Notification-Token", t.Token)
	}
	if t.Credentials != "" {
		h.Set("Authorization", t.Scheme+" "+t.Credentials)
	}
}
