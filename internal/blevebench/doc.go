// Package blevebench measures koine's index of texts beside bleve's on the same texts. It is
// a module of its own, so that koine does not depend on bleve:
//
//	cd internal/blevebench && go test -run '^$' -bench . -benchtime=1x -texts 5000000 -timeout 1h
package blevebench
