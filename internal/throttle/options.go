package throttle

import (
	"cmp"
	"net/netip"
	"time"

	"koine/kg"
)

// Limits of one principal, or of one address. Zero bounds nothing.
type Limits struct {
	Requests float64 // a second
	Updates  float64 // a second
	Streams  int     // open at a time
	// Histories are reads of a channel's history a second, of a principal: an
	// answer may be as large as many others together.
	Histories float64
}

// Defaults and bounds of the Options.
const (
	DefaultMaxBuckets = 10_000
	DefaultBurst      = 10 * time.Second
	// MaxRetryAfter bounds what a refusal says, for rates far below one.
	MaxRetryAfter = time.Minute
	// MaxDebt is how long a caller makes up for its loads at the most.
	MaxDebt = 10 * time.Minute
	// StreamRetryAfter is when to come back where a stream must end first.
	StreamRetryAfter = 5 * time.Second
)

// What was refused.
const (
	Requests  = "requests"
	Updates   = "updates"
	Streams   = "streams"
	Histories = "reads of history"
)

// By whom it was too many.
const (
	ByPrincipal = "principal"
	ByAddress   = "address"
)

// Options of a Throttle. The zero Options bounds nothing.
type Options struct {
	Principal Limits
	Address   Limits
	// Burst is how long a quiet caller saves up requests and updates for.
	Burst time.Duration
	// MaxStreams is how many streams there are for everybody, of which each caller
	// may have half of what the others leave; 0 shares nothing.
	MaxStreams int
	// MaxBuckets bounds the principals, and the addresses, that are remembered.
	MaxBuckets int
	// Clock is time.Now when nil.
	Clock func() time.Time
	// OnRefusal, if set, is told of each refusal.
	OnRefusal func(Refusal)
}

// Refusal is that of somebody who asked for too much.
type Refusal struct {
	What      string     // Requests, Updates or Streams
	By        string     // ByPrincipal or ByAddress
	Principal kg.AgentID // "" where it was the address's limit
	Address   netip.Addr // the zero Addr where it was the principal's
}

func (o Options) withDefaults() Options {
	o.Burst = cmp.Or(o.Burst, DefaultBurst)
	o.MaxBuckets = cmp.Or(o.MaxBuckets, DefaultMaxBuckets)
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.OnRefusal == nil {
		o.OnRefusal = func(Refusal) {}
	}
	return o
}
