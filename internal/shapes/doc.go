// Package shapes validates updates against SHACL shapes that are stored in the graph
// (https://www.w3.org/TR/shacl/, the core language).
//
// # Use
//
// Shapes are statements of the graph kg.ShapesGraph. Everybody can read it;
// administrators write it with Put and Remove. A Set holds the compiled shapes: Load
// compiles them when the store is opened, Follow applies the commits that change the
// graph. Set is a kg.Verifier. Set.Report lists the current violations.
//
// # Semantics
//
// An update is rejected for the violations that it introduces: those of the graph
// after the update that are absent before it, or have become worse. A count becomes
// worse if it moves away from its bound, a value if it violates more of the nested
// shapes. A violation that already exists to the same degree is reported, not
// rejected, even if the shape is newer than the data. The data are the graphs that
// the caller can read, merged, without koine's system graphs: no hidden statement
// influences the result or occurs in a message. Report, called by an agent that can
// read all graphs involved, finds violations across graphs.
//
// Unsupported features are rejected unless PutSupported is used. It omits them,
// together with the constraints that would become stricter without them (LeftOut).
//
// A node that is being validated by a recursive shape counts as conforming to it.
//
// # Evaluation
//
// A shape is compiled once to constraints over paths, and to the dependencies of its
// result: each is a property and the path from the focus node to the node that has
// it. For a changed statement, the index finds the dependencies by predicate and
// follows their paths backwards to the focus nodes with a possibly different result.
// Only these are validated, first after the update. If a node has findings, it is
// also validated before the update, to tell new findings from old ones.
//
// Following the paths backwards in the graph after the update suffices: the result of
// a focus node changes only if something that is read for it changes, and the path to
// the first such statement has not changed.
//
// A recursive shape has its own dependencies and the list of shapes that use it. From
// a node with a possibly different verdict, the search continues to the focus nodes of
// these shapes, unless the node conforms both before and after the update.
//
// The verdict contains the statements read (kg.Verdict.Depends): the committer
// validates again if another update has changed any of them meanwhile.
package shapes
