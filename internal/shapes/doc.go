// Package shapes judges updates by SHACL shapes that are kept in the graph
// (https://www.w3.org/TR/shacl/, the core language).
//
// # Use
//
// Shapes are statements of the graph kg.ShapesGraph, which everybody reads and
// administrators write, with Put and Remove. A Set holds them compiled: it is
// filled once after the store is opened (Load) and then follows the commits that
// change the graph (Follow). It is a kg.Verifier; Report lists what violates the
// shapes in the present.
//
// # What is judged
//
// An update is refused for the violations that it brings: those of the graph
// with it that are none of the graph without it, or are worse there. Worse are a
// count that is further from its bound, and a value that violates more of the
// shapes inside of a shape. What violates a shape already, and as much, is
// reported, not refused, however the shape came later. The data of a
// judgement are the graphs that the caller reads, as one, without koine's own: so
// nothing that is hidden from the caller decides or shows in a message. A
// violation across a graph that the caller does not read is found by Report for
// somebody who does.
//
// Shapes may say what is not judged only if it was asked for (PutSupported). It is
// left out then, with what would refuse more without it (LeftOut).
//
// A node that is under judgement by a recursive shape counts as conforming to it.
//
// # How
//
// A shape is compiled once to constraints over paths. Beside them it keeps what
// they read: after which way from the focus node which property is looked up. A
// change of a statement is looked up there by its predicate, and the way is gone
// back from the statement to the focus nodes whose result may have changed. Only
// these are judged, in the graph with the update first; one without a finding is
// done, and for the others the graph without it says which findings are new.
//
// Going back through the graph with the update is enough: the result of a focus
// node changes only if something that is read for it changes, and what leads to
// the first such thing has not changed itself.
//
// A recursive shape keeps what it reads itself, and which shapes use it. Nodes whose
// verdict by it may have changed lead back to the focus nodes of these, unless they
// conform with the update and without it.
//
// What was read is part of the verdict (kg.Verdict.Depends): the committer judges
// again when another update changed any of it meanwhile.
package shapes
