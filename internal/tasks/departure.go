package tasks

import (
	"context"

	"koine/internal/systemgraph"
	"koine/kg"
)

// departures is the graph that records when agents with open tasks deregistered: the
// subject is the agent's id.
var departures = kg.IRI(kg.JournalGraphPrefix + "departures")

const propLeft = "taskHandlerLeft"

// RecordDeparture records, in the update that deregisters an agent, that the agent leaves its
// tasks.
func RecordDeparture(tx *kg.Tx, agent kg.AgentID) error {
	return systemgraph.Write(tx, departures, kg.IRI(string(agent)), systemgraph.Record{propLeft: {kg.DateTime(tx.Time())}})
}

// failAbandoned fails the tasks of agents that deregistered and did not return within
// LeaveGrace.
func (s *Service) failAbandoned(ctx context.Context) error {
	snapshot, err := s.snapshot(ctx, systemCaller())
	if err != nil {
		return err
	}
	defer snapshot.Close()
	due := s.options.Clock().Add(-s.options.LeaveGrace)
	for st, err := range snapshot.Match(kg.Pattern{Predicate: systemgraph.Property(propLeft), Graph: departures}) {
		if err != nil {
			return err
		}
		agent := kg.AgentID(st.Subject.Value())
		left, _ := st.Object.DateTimeValue()
		back := s.options.Registered(agent)
		if !back && left.After(due) {
			continue
		}
		if !back {
			more, err := s.failTasksOf(ctx, snapshot, agent)
			if err != nil {
				return err
			}
			if more {
				continue
			}
		}
		if _, err := s.runUpdate(ctx, systemCaller(), "tasks/abandoned", func(tx *kg.Tx) error {
			return tx.ApplyOwn(kg.Patch{Op: kg.Remove, Quad: st.Quad}) // a later departure has another object and stays
		}); err != nil {
			return err
		}
	}
	return nil
}

// failTasksOf fails tasks of an agent that left, and reports whether there are more.
func (s *Service) failTasksOf(ctx context.Context, snapshot *kg.Snapshot, agent kg.AgentID) (more bool, err error) {
	n := 0
	for st, err := range snapshot.Match(openOf(agent)) {
		if err != nil {
			return false, err
		}
		if n++; n > maxExpired {
			return true, nil
		}
		err := s.editTask(ctx, systemCaller(), "tasks/abandoned", IDOf(st.Subject), func(e *edit) error {
			if e.task.Status.State.Ended() || s.options.Registered(agent) {
				return errEnded(e.task.Status.State)
			}
			return e.failFor(FailureLeft, "the agent deregistered and did not return in time")
		})
		if err != nil && kg.CodeOf(err) != kg.CodeTaskEnded && kg.CodeOf(err) != kg.CodeTaskNotFound {
			return false, err
		}
	}
	return false, nil
}

func openOf(agent kg.AgentID) kg.Pattern {
	return kg.Pattern{Predicate: systemgraph.Property(propOpen), Object: kg.IRI(string(agent))}
}

// noteDeparted records the departure of agents that are not registered and have open
// tasks. Older builds did not record it.
func (s *Service) noteDeparted(ctx context.Context) error {
	snapshot, err := s.snapshot(ctx, systemCaller())
	if err != nil {
		return err
	}
	defer snapshot.Close()
	for _, agent := range s.options.Unregistered() {
		_, open, err := systemgraph.First(snapshot.Match, openOf(agent))
		if err != nil {
			return err
		}
		if !open {
			continue
		}
		_, noted, err := systemgraph.First(snapshot.Match, kg.Pattern{Subject: kg.IRI(string(agent)), Predicate: systemgraph.Property(propLeft), Graph: departures})
		if err != nil {
			return err
		}
		if noted {
			continue
		}
		if _, err := s.runUpdate(ctx, systemCaller(), "tasks/abandoned", func(tx *kg.Tx) error { return RecordDeparture(tx, agent) }); err != nil {
			return err
		}
	}
	return nil
}
