// Package webhook calls web hooks: addresses that callers of the server name, to be told
// of something. What is told, in which order, and what becomes of a call that fails is
// for those who use it.
//
// It calls nothing of the private network unless that is allowed, follows no redirects,
// asks no proxy, and says in no error where it called or what it showed there.
package webhook
