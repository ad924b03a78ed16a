// Package offline has the commands on a whole store: load, export, diff, check, backup,
// restore, erase, keys, shapes, prefix, scheme and rules. They open the data directory of
// --data, which no server has open, with all rights; most work on a running server as well
// (--url), and do the same there.
//
// Each command is a struct of flags with a method Run. CheckCommand is a simple one to begin
// with; LoadCommand is the largest: a loadJob loads files into a directory, uploadFiles sends
// them to a server.
package offline
