// Package jetstreambench measures the store's durable updates beside NATS
// JetStream's file store that syncs every message. It is a module of its own, so
// that koine does not depend on a message server:
//
//	cd internal/jetstreambench && go test -run '^$' -bench . -benchtime=10x
package jetstreambench
