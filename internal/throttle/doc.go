// Package throttle limits the requests, updates and open streams of principals and
// addresses. It is independent of protocols:
//
//	t := throttle.New(throttle.Options{Principal: throttle.Limits{Requests: 100}})
//	err := t.AllowAddress(addr)              // before authentication
//	err = t.AllowRequest(principal.ID)       // after it, and for each further operation
//	err = t.AllowUpdate(principal.ID, addr)  // for each update
//	t.ChargeDebt(principal.ID, addr)         // for each further part of a load
//	release, err := t.OpenStream(principal.ID, addr)
//
// A refusal is a *kg.Error with CodeRateLimited and the time after which to retry.
//
// Requests and updates use token buckets (golang.org/x/time/rate): a rate per second,
// and Burst seconds' worth at once after a quiet period. Buckets are kept for the most
// recently seen principals and addresses, up to MaxBuckets of each. An evicted bucket
// starts full again, so this bound can only relax a limit. Streams are counted while
// they are open, and their counts are never evicted.
//
// An IPv6 address counts as its /64, the usual allocation of one customer. Loopback
// addresses have no limits: their requests come from this machine, or from a proxy,
// which should be configured as trusted.
package throttle
