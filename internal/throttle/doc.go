// Package throttle bounds what one caller, or one address, can ask of a server:
// requests, updates, streams that are open at a time. It knows no protocol:
//
//	t := throttle.New(throttle.Options{Principal: throttle.Limits{Requests: 100}})
//	err := t.Address(addr)             // before anybody knows who is calling
//	err = t.Request(principal.ID)      // then, and for each further operation
//	err = t.Update(principal.ID, addr) // inside the write door
//	t.Owe(principal.ID, addr)          // for each further part of a load
//	release, err := t.Stream(principal.ID, addr)
//
// A refusal is a *kg.Error with CodeRateLimited that says when to come back.
//
// Requests and updates are token buckets (golang.org/x/time/rate): so many a
// second, and Burst seconds' worth at once after a quiet while. Buckets are kept
// for the principals and addresses that were seen last, up to MaxBuckets of each;
// one that is forgotten starts anew with a full bucket, so the bound makes limits
// milder and never harder. Streams are counted for as long as they are open, and
// none is forgotten.
//
// An IPv6 address counts as its /64, which is what one customer has. Loopback
// addresses have no limits of their own: what comes from there is this machine,
// or a proxy that should be named to the server.
package throttle
