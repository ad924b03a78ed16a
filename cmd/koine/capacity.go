package main

import (
	"fmt"

	"koine/internal/httpd"
	"koine/internal/throttle"
)

// capacityFlags bound the server resources that all callers share. One caller may use half
// of the amount that the others leave (throttle.Pool).
type capacityFlags struct {
	MaxStreams     int  `help:"Maximum number of open event streams, WebSockets and subscriptions. One caller may use half of what the others leave." default:"10000" placeholder:"N"`
	MaxConnections *int `help:"Maximum number of open connections. One caller may use half of what the others leave (default: derived from the limit of open files, at most 16384)." placeholder:"N"`
	ReceivedMiB    int  `help:"Maximum memory for received requests and messages that are not answered yet. One caller may use half of what the others leave." default:"256" name:"received-mib" placeholder:"MIB"`
}

// Bounds of the flags.
const (
	maxCapacity    = 1_000_000 // streams, and connections
	minReceivedMiB = 32        // one message is 8 MiB at the most
	maxReceivedMiB = 64 << 10
)

func (f capacityFlags) validateRanges() error {
	connections := httpd.MinConnections
	if f.MaxConnections != nil {
		connections = *f.MaxConnections
	}
	for _, flag := range []struct {
		name               string
		value, least, most int
	}{
		{"max-streams", f.MaxStreams, 1, maxCapacity},
		{"max-connections", connections, httpd.MinConnections, maxCapacity},
		{"received-mib", f.ReceivedMiB, minReceivedMiB, maxReceivedMiB},
	} {
		if flag.value < flag.least || flag.value > flag.most {
			return usageError{fmt.Errorf("--%s must be between %d and %d", flag.name, flag.least, flag.most)}
		}
	}
	return nil
}

// maxConnections returns the limit of connections, 0 to derive it from the limit of open
// files.
func (f capacityFlags) maxConnections() int {
	if f.MaxConnections == nil {
		return 0
	}
	return *f.MaxConnections
}

// newIntake returns the pool that bounds the memory of received requests and messages.
func (f capacityFlags) newIntake() throttle.Intake {
	return throttle.Intake{Pool: throttle.NewPool(int64(f.ReceivedMiB) << 20)}
}
