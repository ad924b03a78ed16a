// Command benchguard measures the processor time that two koine binaries take for
// the same work, in turns, and writes what it measured as benchmark results for
// benchstat. scripts/bench-guard.sh builds the binaries and judges the results.
//
// It knows the binaries by their command line and by HTTP alone, so that it measures
// builds of any age: package benchmarks come and go with their packages.
//
// A round starts each side once, on a copy of the same prepared data directory, and
// runs all rows against it. A row is a fixed number of requests by a fixed number of
// clients, and its figure is the processor time (user and system) of the server, or
// of the command, divided by that number. Elapsed time is not compared: the machine
// is shared.
package main
