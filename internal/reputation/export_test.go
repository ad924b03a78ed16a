package reputation

// NewBounded returns a service with lesser bounds.
func NewBounded(store Store, looked, scanned int) *Service { return &Service{store, looked, scanned} }
