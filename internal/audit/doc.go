// Package audit lists accepted updates and refused requests for administrators.
//
// Accepted updates are in the log, each with its principal, actor, time and
// justification. List reads them from there, so there is no second record that could
// differ or be lost, and the list goes back as far as the log.
//
// Refusals leave nothing in the log. A Trail keeps the newest MaxRefusals refusals in
// memory and, after Persist, in a file beside the log, and writes one line per refusal
// to the operator's log. Repetitions within RepeatWindow (same kind, caller, address,
// path and reason) count as one refusal and are logged once. Each address can have
// MaxDistinctPerAddress distinct refusals per RepeatWindow and, when the Trail is full,
// at most a tenth of it. This prevents one client from displacing the refusals of
// others, and from filling the disk.
//
// The file has one line of JSON per refusal, and a second one at the end of the window
// if it was repeated. It is written asynchronously, once per second with a sync; a
// crash loses unwritten refusals. At its maximum size the file is rewritten with the
// content of the Trail. It is read when the server starts.
//
// Neither the Trail nor the file holds secrets, literals or texts sent by callers,
// except the names of agents and the path of the route.
package audit
