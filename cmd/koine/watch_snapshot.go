package main

// entitySnapshotSubscription is entityChanges with the statements of the snapshot.
const entitySnapshotSubscription = `subscription Watch($iri: IRI!, $depth: Int!, $far: Boolean!) {
  entityChanged(iri: $iri, depth: $depth) {
    ... on EntityChange {
      entity {
        out(first: 1000) @skip(if: $far) { nodes { ...fields } pageInfo { hasNextPage } }
        neighborhood(depth: $depth) @include(if: $far) { statements { ...fields } truncated }
      }
    }
  }
}
fragment fields on Statement {
  subject { id: iri } predicate object { ... on Entity { id: iri } ... on Literal { value language } } graph revision
  assertions { source certainty revision }
}`

// entitySnapshot is the snapshot that entitySnapshotSubscription selects: the entity's own
// statements, or with a depth its neighborhood. Entity is nil if the entity has no
// statements.
type entitySnapshot struct {
	Entity *struct {
		Out struct {
			Nodes    []snapshotStatement `json:"nodes"`
			PageInfo struct {
				HasNextPage bool `json:"hasNextPage"`
			} `json:"pageInfo"`
		} `json:"out"`
		Neighborhood struct {
			Statements []snapshotStatement `json:"statements"`
			Truncated  bool                `json:"truncated"`
		} `json:"neighborhood"`
	} `json:"entity"`
}

// snapshotStatement is a statement of a snapshot with its assertions.
type snapshotStatement struct {
	Subject    node   `json:"subject"`
	Predicate  string `json:"predicate"`
	Object     node   `json:"object"`
	Graph      string `json:"graph"`
	Revision   uint64 `json:"revision"`
	Assertions []struct {
		Source    string   `json:"source"`
		Certainty *float64 `json:"certainty"`
		Revision  uint64   `json:"revision"`
	} `json:"assertions"`
}

// printSnapshot writes a line for each statement, in the form of later changes.
func (s *entitySnapshot) printSnapshot(c *watchCommand, t terminal) error {
	if s.Entity == nil {
		return nil
	}
	list := append(s.Entity.Out.Nodes, s.Entity.Neighborhood.Statements...)
	for i := range list {
		if err := c.printChange(t, list[i].strongestChange()); err != nil {
			return err
		}
	}
	if s.Entity.Out.PageInfo.HasNextPage || s.Entity.Neighborhood.Truncated {
		t.sayf("The entity has more than these %d statements; use koine query for the rest.", len(list))
	}
	return nil
}

// strongestChange returns the statement with its strongest assertion: the greatest certainty
// (a fact counts as 1), then the newest revision. Snapshots of statement subscriptions
// choose alike.
func (s *snapshotStatement) strongestChange() *change {
	c := change{Op: "add", Statement: changedStatement{Subject: s.Subject, Predicate: node{ID: s.Predicate}, Object: s.Object, Graph: s.Graph}}
	c.Metadata.Snapshot, c.Metadata.Revision = true, s.Revision
	best, newest := -1.0, uint64(0)
	for _, a := range s.Assertions {
		certainty := 1.0
		if a.Certainty != nil {
			certainty = *a.Certainty
		}
		if certainty > best || certainty == best && a.Revision > newest {
			best, newest = certainty, a.Revision
			c.Statement.Certainty, c.Metadata.Source = a.Certainty, a.Source
		}
	}
	return &c
}
