package channels

import "time"

// Patient are options with another pause between two looks at what is due.
func Patient(o Options, pause time.Duration) Options {
	o.pause = pause
	return o
}
