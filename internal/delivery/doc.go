// Package delivery sends notifications to web hooks: URLs that callers of the server
// configure.
//
// A Job makes the deliveries of one sort: it follows the log, runs a Line for each hook with
// something to deliver, and stores the progress at intervals. It restarts after an error. The
// sort decides about content, order and attempts: package push delivers the events of tasks,
// package mailhook the letters of mailboxes.
//
// A Sender makes the calls, with bounded concurrency that the agents share: slow hooks of one
// do not use up the calls of the others. It calls no private networks unless allowed, follows
// no redirects and uses no proxy. Its errors reveal neither the URL nor the credentials.
package delivery
