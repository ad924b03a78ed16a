// Package audit tells an administrator who did what, and who was not let.
//
// What was done stands in the log, every accepted update with its principal, the
// agent that it acted for, its time and its reason: List reads it from there, so
// there is no second truth that could differ or be lost, and it goes back as far
// as the log does.
//
// What was refused leaves nothing in the log. A Trail keeps the newest
// MaxRefusals of them in memory and, with Keep, in a file beside the log, and
// writes a line to the operator's log for each. What repeats within a minute (the
// same kind, of the same caller, from the same address, on the same path, for the
// same reason) is one refusal that counts up, and one line when it begins. One
// address has a hundred of them told apart in a minute, and when the Trail is full
// a tenth of it at most for its new ones: so nobody can push out what others did,
// nor fill the disk.
//
// The file is JSON, a line for each refusal, and one more when its minute is over
// and it was repeated. It is written behind the requests, once a second with a
// sync; a crash loses what was not written by then. The file has a bound, at which
// it is made anew with what the Trail has. It is read when the server starts.
//
// Neither holds a secret, a literal or a text that a caller sent, but for the
// names of agents and the path of the route.
package audit
