// Package webhook calls web hooks: URLs that callers of the server configure for
// notifications. Content, order, and the handling of failed calls are up to its users.
//
// It calls no private networks unless allowed, follows no redirects and uses no proxy.
// Its errors reveal neither the URL nor the credentials.
package webhook
