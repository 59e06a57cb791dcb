package nodes

import (
	"gbatch/internal/api"
	"gbatch/internal/ctld/curves"
	"gbatch/internal/node"
)

// keepUse keeps what ranks have used that the node was given. It may say what it
// likes of others.
func (s *Exchange) keepUse(name string, list []api.RankUse) {
	v := s.Loop.View()
	for i := range list {
		u := &list[i]
		j := v.Job(u.ID.Job)
		if j == nil || u.ID.Attempt == 0 || j.Try() != u.ID.Attempt || j.Index != int(u.ID.Task) || !node.SameJob(u.UUID, j.Identity()) {
			continue
		}
		if ranks := j.Last().Ranks; int(u.ID.Rank) < len(ranks) && ranks[u.ID.Rank].Alloc.Node == name {
			s.Curves.Put(curves.Key{User: j.Owner.User, UUID: j.Identity(), Attempt: u.ID.Attempt, Rank: u.ID.Rank}, &u.LiveUse)
		}
	}
}
