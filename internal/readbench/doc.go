// Package readbench measures point reads over HTTP: a film with all its statements, and two hops
// from it, beside a bare prototype over the same keys in Badger, and one film's label and classes
// beside an echo of JSON. It has tests only, and knows koine by its command line and by HTTP, so
// that builds of any age compare.
//
//	go test ./internal/readbench -run '^$' -bench Reads -benchtime 20x
//	go test ./internal/readbench -run '^$' -bench Reads -benchtime 20x -koine before=PATH,now=PATH
//	go test ./internal/readbench -run '^$' -bench Reads -benchtime 20x -with virtuoso,dgraph
//
// Each side is a process of its own; sides take turns, round by round, and the processor time of
// the servers counts. Other servers, which have to be installed, are asked the same in their own
// languages. The clients are bare connections in the process of the benchmark. The
// film graph is the file that KOINE_FILMS names, or ../shared/data/movies.nq.gz beside the
// repository.
package readbench
