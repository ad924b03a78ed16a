package forward

import (
	"context"

	"koine/internal/systemgraph"
	"koine/internal/tasks"
	"koine/kg"
)

// sweep removes the links of tasks that ended without their upstream: by another report, by
// their expiry, or by their deletion. Their progress is in the mailboxes, so it is all that
// the job has to save.
func (s *Service) sweep(context.Context) {
	ctx := s.job.Context()
	if ctx.Err() != nil {
		return // the next server removes them
	}
	list, err := s.endedLinks(ctx)
	if err == nil && len(list) > 0 {
		err = s.update(ctx, systemCaller, "upstream/forget", func(tx *kg.Tx) error {
			for _, id := range list {
				if err := forgetLink(tx, id); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err != nil && ctx.Err() == nil {
		s.options.Logger.Error("cannot remove what upstreams called ended tasks", "error", err)
	}
}

// endedLinks lists tasks with a link that have ended and have no letter.
func (s *Service) endedLinks(ctx context.Context) (list []tasks.TaskID, err error) {
	snapshot, err := s.store.View(ctx, systemView)
	if err != nil {
		return nil, err
	}
	defer snapshot.Close()
	for st, err := range snapshot.Match(kg.Pattern{Predicate: systemgraph.Property(propSent), Graph: Graph}) {
		if err != nil {
			return nil, err
		}
		id := tasks.IDOf(st.Subject)
		canceled, err := s.tasks.ReadLetter(ctx, tasks.Notice{Task: id})
		if err != nil {
			return nil, err
		}
		now, err := s.tasks.Get(ctx, systemCaller, id, tasks.ReadOptions{})
		switch {
		case err != nil && kg.CodeOf(err) != kg.CodeTaskNotFound:
			return nil, err
		case err == nil && (canceled != nil || !now.Status.State.Ended()):
			continue
		}
		if list = append(list, id); len(list) == MaxSwept {
			break
		}
	}
	return list, nil
}

func forgetLink(tx *kg.Tx, id tasks.TaskID) error {
	return systemgraph.Write(tx, Graph, id.Entity(), systemgraph.Record{propTask: nil, propContext: nil, propSent: nil, propAway: nil})
}
