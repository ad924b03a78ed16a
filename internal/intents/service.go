package intents

import (
	"time"

	"koine/channels"
	"koine/kg"
)

// Service manages intents. Its methods may be called concurrently.
type Service struct {
	store  *kg.Store
	scopes *channels.Scopes
	clock  func() time.Time
}

// New returns a service of the intents in the store. clock is time.Now if nil.
func New(store *kg.Store, scopes *channels.Scopes, clock func() time.Time) *Service {
	if clock == nil {
		clock = time.Now
	}
	return &Service{store: store, scopes: scopes, clock: clock}
}

// Leases returns the part of the service for leases.
func (s *Service) Leases() *Leases { return &Leases{s.store, s.scopes, s.clock} }

// Tasks returns the part of the service for tasks.
func (s *Service) Tasks() *Tasks { return &Tasks{s.store, s.scopes} }

// Requests returns the part of the service for access requests.
func (s *Service) Requests() *Requests { return &Requests{s.store, s.scopes} }

// Portfolios returns the part of the service for portfolios.
func (s *Service) Portfolios() *Portfolios { return &Portfolios{s.store, s.scopes} }
