// Package bench has the command bench, which measures throughput and latency of a running
// server beside a bare HTTP server that takes turns with it (the twin). Command.Run is where
// to begin: a workload makes the requests, a measurement collects the observations of the clients.
package bench
