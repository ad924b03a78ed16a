// Command housestyle measures the hand-written Go of the repository: its size, and two
// signs of prose that is hard to read.
//
//	go run ./internal/housestyle                 # a table, package by package
//	go run ./internal/housestyle -check          # fails beyond the bounds
//	go run ./internal/housestyle -lines          # the number of lines, nothing else
//	go run ./internal/housestyle -at cf518e5     # the same of a commit
//
// Hand-written is every .go file that is tracked by git, without tests (_test.go), files
// with the header "Code generated … DO NOT EDIT.", and folders named third_party. Packages
// that only tests import count.
//
// The measures:
//
//   - pronouns: how often "what", "who", "whose" and "whoever" stand in 1,000 lines of
//     comment. Empty lines and directives such as //go:build do not count.
//   - one word: the share of functions and methods whose name is one lower-case word
//     (^[a-z][a-z0-9]*$), in percent. Function literals have no name and do not count.
//
// Neither measure is an aim of its own: close, len and read are good names. Above the
// bounds a package is written in a dialect.
//
// scripts/language.sh and scripts/lines.sh run it; the bounds stand in the former.
package main
