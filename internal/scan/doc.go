// Package scan judges the content of messages before they are published, by the
// operator's rules on messages and by a web hook of the operator's. It is a
// channels.Scanner:
//
//	hook, err := scan.NewHook(scan.HookOptions{Target: target, Secret: secret})
//	scanner := scan.New(rules, hook) // either may be nil
//
// # Promises
//
//   - The rules come first. Messages that they refuse or hold are not sent to the hook.
//   - A message is sent to nobody but the hook, and nothing of it is in an error or in
//     the log. The body of each call is signed.
//   - A call is bounded in time, in bytes of both directions, and in number. What happens
//     to a message that the hook does not judge is the operator's choice (HookOptions.
//     OnFailure). Such a refusal is transient: a repeated request is judged anew.
//   - After several failures in a row the hook is not called for a while, so that a hook
//     that is away does not delay every message, unless its messages are held.
//
// docs/content-scanning.md describes the call.
package scan
