// Package online has the commands that are clients of a server: query, update, watch,
// channel, graph, review, agent and health. They use package client as any other client
// does, and know nothing of the store.
//
// Each command is a struct of flags with a method Run. QueryCommand is a simple one to begin
// with; graphs,
// agents and proposals are listed and shown by objects.
package online
