// Package audit tells an administrator who did what, and who was not let.
//
// What was done stands in the log, every accepted update with its principal, the
// agent that it acted for, its time and its reason: List reads it from there, so
// there is no second truth that could differ or be lost, and it goes back as far
// as the log does.
//
// What was refused leaves nothing in the log. A Trail keeps the newest
// MaxRefusals of them in memory, and writes a line to the operator's log for
// each: that line is what lasts. What repeats within a minute (the same kind, of
// the same caller, from the same address, on the same path, for the same reason)
// is one refusal that counts up, and one line when it begins; so nobody can push
// out what others did by repeating themselves, nor fill the disk with lines.
//
// Neither holds a secret, a literal or a text that a caller sent, but for the
// names of agents and the path of the route.
package audit
