// Package fanoutbench measures how koine passes one event to thousands of event streams,
// beside a bare server of net/http: processor time of a delivery, the time until the last
// stream has the event, and the resident memory of an open stream. It has tests only, and
// knows koine by its command line and by HTTP, so that builds of any age compare.
//
//	go test ./internal/fanoutbench -run '^$' -bench FanOut -benchtime 100x -streams 5000
//	go test ./internal/fanoutbench -run '^$' -bench FanOut -benchtime 20x -streams 19000 -doors channels -bare=false
//
// Sides take turns, event by event. Each is a process of its own; the clients are sockets
// of one loop in the process of the benchmark, the same for all sides.
package fanoutbench
