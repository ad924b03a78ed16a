// Command benchguard compares the processor time of two koine binaries for the same work.
// It measures them in turns and writes the results in the format of benchstat.
// scripts/bench-guard.sh builds the binaries and evaluates the results.
//
// It uses the binaries through their command line and HTTP only, so that it works with
// builds of any age.
//
// A round starts each side once, on a copy of the same prepared data directory, and runs
// all rows against it. A row is a fixed number of requests by a fixed number of clients.
// Its result is the processor time (user and system) of the server, or of the command,
// divided by that number. Rows that end in Indexed pay for the index of texts: they end
// when it has what they wrote, and a load when a server has built it. Elapsed time is not
// compared, because the machine may be shared.
package main
