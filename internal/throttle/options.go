package throttle

import (
	"cmp"
	"net/netip"
	"time"

	"koine/kg"
)

// Limits are the limits of one principal or one address. Zero means no limit.
type Limits struct {
	Requests float64 // per second
	Updates  float64 // per second
	Streams  int     // open at the same time
	// Histories limits reads of channel history per second and principal: one response
	// may be as large as many others together.
	Histories float64
}

// Defaults and limits.
const (
	DefaultMaxBuckets = 10_000
	DefaultBurst      = 10 * time.Second
	// MaxRetryAfter is the maximum RetryAfter of a refusal, for rates far below one per
	// second.
	MaxRetryAfter = time.Minute
	// MaxDebt is the maximum time that a caller takes to pay the debt of its loads.
	MaxDebt = 10 * time.Minute
	// StreamRetryAfter is the RetryAfter if another stream must end first.
	StreamRetryAfter = 5 * time.Second
)

// The resources that have limits.
const (
	Requests  = "requests"
	Updates   = "updates"
	Streams   = "streams"
	Histories = "reads of history"
)

// Values of Refusal.By.
const (
	ByPrincipal = "principal"
	ByAddress   = "address"
)

// Options configures a Throttle. The zero value imposes no limits.
type Options struct {
	Principal Limits
	Address   Limits
	// Burst is the period for which an inactive caller accumulates requests and
	// updates.
	Burst time.Duration
	// MaxStreams is the number of streams shared by all callers. Each caller may have
	// half of the streams that the others leave free. 0 disables sharing.
	MaxStreams int
	// MaxBuckets is the maximum number of principals, and of addresses, with a bucket.
	MaxBuckets int
	// Clock is time.Now if nil.
	Clock func() time.Time
	// OnRefusal, if not nil, is called for each refusal.
	OnRefusal func(Refusal)
}

// Refusal describes a request that exceeded a limit.
type Refusal struct {
	What      string     // Requests, Updates or Streams
	By        string     // ByPrincipal or ByAddress
	Principal kg.AgentID // "" for a limit of the address
	Address   netip.Addr // the zero Addr for a limit of the principal
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
