package ctld

import (
	"path/filepath"
	"time"

	"gbatch/internal/ctld/site"
	"gbatch/internal/ctld/trees"
	"gbatch/internal/tree"
)

// openTrees opens the directories that users have brought along, or takes those over that
// this controller had while another one led. Jobs can still be taken when there is no room
// for more of those.
func (s *Server) openTrees() (*trees.Store, error) {
	rules := trees.Rules{
		Most: func(user string) tree.Size {
			l := s.rules.Now().Limits.Of(user)
			return tree.Size{Files: l.Uploaded, Bytes: l.UploadedMiB << 20}
		},
		Free:   func() int64 { return freeForTrees(s.rules.Now()) },
		Keep:   func() time.Duration { return time.Duration(s.rules.Now().Keep.Uploads) * time.Second },
		Needed: trees.NeededOf(s.jobs),
	}
	if s.leads == nil {
		return trees.Open(trees.Config{Dir: filepath.Join(s.rules.Now().Dir, site.TreesDir), Now: s.now, Log: s.log}, rules)
	}
	rules.Others = s.leads.others.Trees()
	s.leads.trees.Rule(rules)
	return s.leads.trees, nil
}

// freeForTrees are the bytes of the disk that uploaded directories leave alone.
func freeForTrees(c *site.Config) int64 { return int64(c.ReserveMiB) << 22 }
