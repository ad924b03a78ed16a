package throttle

// BucketCount returns the number of buckets in memory.
func (t *Throttle) BucketCount() int {
	return t.requests.principal.len() + t.requests.address.len() + t.updates.principal.len() + t.updates.address.len() + t.histories.len()
}

func (b *buckets[K]) len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.order.Len()
}
