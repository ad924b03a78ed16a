package kg

import "context"

// maxPlaceCommits is how far back LoadedUpTo looks for a load.
const maxPlaceCommits = 1 << 20

// LoadedUpTo finds the newest commit that a load of this principal made in a session
// (Meta.SessionID), and gives what LoadOptions.Place said of it: so far the load is in the
// store, whatever ended it. It is "" where none of the newest commits is such a load's, as
// many as the log has and no more than a million.
func (s *Store) LoadedUpTo(ctx context.Context, principal AgentID, session string) (place string, at Revision, err error) {
	newest, oldest := s.head.Load().revision, Revision(s.wal.First())
	if oldest == 0 {
		return "", 0, nil
	}
	if newest-oldest >= maxPlaceCommits {
		oldest = newest - maxPlaceCommits + 1
	}
	principal = CanonicalAgent(string(principal))
	progress := s.newProgress("looking for the load in the log", uint64(newest-oldest+1))
	for r := newest; r >= oldest && r > 0; r-- {
		if ctx.Err() != nil {
			return "", 0, errGivenUp(ctx)
		}
		c, err := s.readEntryHead(r)
		if err != nil {
			return "", 0, err
		}
		if c.sessionID == session && c.principal == principal {
			return c.messageID, r, nil
		}
		progress.step(uint64(newest - r + 1))
	}
	return "", 0, nil
}
