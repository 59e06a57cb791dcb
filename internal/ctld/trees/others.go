package trees

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/tree"
)

// Others are the further controllers while this one leads.
type Others interface {
	// Peers are all of them.
	Peers() ([]Peer, error)
	// Do does something with each at the same time. It has failed if those with which
	// it worked are no majority together with this one.
	Do(ctx context.Context, what func(context.Context, Peer) error) error
}

// Peer is another controller's trees.
type Peer interface {
	Name() string
	// Trees are when each was last wanted, by user and tree.
	Trees(context.Context) (map[string]map[string]time.Time, error)
	// Tree is one of a user's; nil: it is not there.
	Tree(ctx context.Context, user, id string) (*Copy, error)
	// Chunk is a chunk of a user's; nil: it is not there.
	Chunk(ctx context.Context, user, sum string) ([]byte, error)
	// Take has a tree kept, or says which chunks it lacks.
	Take(ctx context.Context, user string, c Copy) (missing []string, err error)
	TakeChunk(ctx context.Context, user, sum string, data []byte) error
	Drop(ctx context.Context, user, id string) error
}

// Copy is a tree as controllers give it to each other.
type Copy struct {
	Kept
	Wanted time.Time `json:"wanted"`
}

// spreadChunk gives the others a chunk that is here. What fails is seen when the tree comes.
func (s *Store) spreadChunk(ctx context.Context, user, sum string, data []byte) {
	if others := s.rules.Load().Others; others != nil {
		_ = others.Do(ctx, func(ctx context.Context, p Peer) error { return p.TakeChunk(ctx, user, sum, data) })
	}
}

// spread gives the others a tree that is here. It has failed if no majority has it then.
func (s *Store) spread(ctx context.Context, user, id string) error {
	others := s.rules.Load().Others
	if others == nil {
		return nil
	}
	err := others.Do(ctx, func(ctx context.Context, p Peer) error { return s.give(ctx, p, user, id) })
	if err != nil {
		return api.Errorf(api.CodeUnavailable, "the directory is not with a majority of the controllers, and would be lost with one of them: %v", err).
			WithHint("try again in a minute; `gadm controllers` shows how the controllers fare")
	}
	return nil
}

// give has another controller keep a tree.
func (s *Store) give(ctx context.Context, p Peer, user, id string) error {
	for range 2 { // what was missing is there the second time
		c, err := s.Tree(ctx, user, id)
		if err != nil {
			return err
		}
		if c == nil {
			return fmt.Errorf("the directory %s has gone meanwhile", id)
		}
		missing, err := p.Take(ctx, user, *c)
		if err != nil || len(missing) == 0 {
			return err
		}
		for _, sum := range missing {
			data, err := s.Chunk(ctx, user, sum)
			if err == nil {
				err = p.TakeChunk(ctx, user, sum, data)
			}
			if err != nil {
				return err
			}
		}
	}
	return fmt.Errorf("controller %s lacks chunks that it has just taken", p.Name())
}

// fetch gets a tree of another controller. False: none has it.
func (s *Store) fetch(ctx context.Context, user, id string) (bool, error) {
	others := s.rules.Load().Others
	if others == nil {
		return false, nil
	}
	o, err := s.owner(user)
	if err != nil {
		return false, err
	}
	o.fetching.Lock() // many nodes may want the same
	defer o.fetching.Unlock()
	if here, err := s.here(user, id); here || err != nil {
		return here, err
	}
	peers, err := others.Peers()
	if err != nil {
		return false, err
	}
	var silent []string
	for _, p := range peers {
		got, err := s.get(ctx, p, user, id)
		if got {
			return true, nil
		}
		if err != nil {
			s.Log.Warn("an uploaded directory was not got of another controller", "directory", id, "user", user, "other", p.Name(), "error", err)
			silent = append(silent, p.Name())
		}
	}
	if len(silent) > 0 {
		return false, api.Errorf(api.CodeUnavailable, "the directory %s is not on this controller, and controller %s, which may have it, does not give it", id, strings.Join(silent, ", ")).
			WithHint("`gadm controllers` shows how the controllers fare")
	}
	return false, nil
}

// get gets a tree of one controller. False: it is not there.
func (s *Store) get(ctx context.Context, p Peer, user, id string) (bool, error) {
	c, err := p.Tree(ctx, user, id)
	if err != nil || c == nil {
		return false, err
	}
	if c.ID() != id {
		return false, errCorrupt
	}
	missing, err := s.Take(ctx, user, *c)
	for _, sum := range missing {
		if err != nil {
			break
		}
		var data []byte
		if data, err = p.Chunk(ctx, user, sum); err == nil {
			err = s.TakeChunk(ctx, user, sum, data)
		}
	}
	if err == nil && len(missing) > 0 {
		if missing, err = s.Take(ctx, user, *c); err == nil && len(missing) > 0 {
			err = fmt.Errorf("%d of its chunks are missing", len(missing))
		}
	}
	return err == nil, err
}

// compareEvery is how often what is here is compared with what the others have.
const compareEvery = 10 * time.Minute

// compared compares with all others, and logs what went wrong if it is not what was said
// last, which it returns.
func (s *Store) compared(ctx context.Context, said string) string {
	err := s.compare(ctx)
	if err == nil || ctx.Err() != nil {
		return ""
	}
	if text := err.Error(); text != said && s.any() {
		s.Log.Warn("uploaded directories are not with all controllers; this is tried again every ten minutes", "error", err)
		return text
	}
	return said
}

// any says whether anything is kept here. Else one that does not answer lacks nothing.
func (s *Store) any() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.users) > 0
}

// compare sees that all others have the trees that are here and no others, and gets of
// them what this controller should have and lacks.
func (s *Store) compare(ctx context.Context) error {
	others := s.rules.Load().Others
	if others == nil {
		return nil
	}
	peers, err := others.Peers()
	errs := err
	for _, p := range peers {
		theirs, err := p.Trees(ctx)
		for user, trees := range theirs {
			err = errors.Join(err, s.takeOver(ctx, p, user, trees))
		}
		if err == nil {
			err = s.complete(ctx, p, theirs)
		}
		errs = errors.Join(errs, err)
	}
	return errs
}

// takeOver gets of another controller the trees of a user that should be here too, and has
// it remove those that nobody needs any more.
func (s *Store) takeOver(ctx context.Context, p Peer, user string, theirs map[string]time.Time) error {
	o, err := s.owner(user)
	if err != nil {
		return err
	}
	rules := s.rules.Load()
	needed, err := rules.Needed(user)
	if err != nil {
		return err
	}
	latest := slices.SortedFunc(maps.Keys(theirs), func(a, b string) int {
		return cmp.Or(theirs[b].Compare(theirs[a]), cmp.Compare(a, b))
	})
	var errs error
	for _, id := range latest {
		o.mu.Lock()
		here := o.trees[id] != nil
		o.mu.Unlock()
		if here {
			continue
		}
		wanted := needed[id]
		if !wanted && theirs[id].After(s.Now().Add(-rules.Keep())) {
			wanted, err = s.roomFor(ctx, p, o, id)
		}
		switch {
		case err != nil:
		case wanted:
			_, err = s.get(ctx, p, user, id)
		default:
			err = p.Drop(ctx, user, id)
		}
		errs, err = errors.Join(errs, err), nil
	}
	return errs
}

// roomFor says whether a user's bound allows a tree that another controller has. It may have
// been removed here to make room.
func (s *Store) roomFor(ctx context.Context, p Peer, o *owner, id string) (bool, error) {
	c, err := p.Tree(ctx, o.name, id)
	if err != nil || c == nil {
		return false, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	missing := map[string]bool{}
	for _, sum := range o.missing(c.Manifest) {
		missing[sum] = true
	}
	more := tree.Size{Files: c.Files, Bytes: (&kept{Kept: c.Kept}).charge()}
	for _, k := range c.Chunks {
		if missing[k.Sum] {
			delete(missing, k.Sum) // once, also where it is twice
			more.Bytes += charge(k.Size)
		}
	}
	return o.fits(more, s.most(o.name)), nil
}

// complete gives another controller what it lacks of what is here, and says what was wanted
// since.
func (s *Store) complete(ctx context.Context, p Peer, theirs map[string]map[string]time.Time) error {
	ours, err := s.Trees(ctx)
	if err != nil {
		return err
	}
	var errs error
	for user, trees := range ours {
		for id, wanted := range trees {
			if at, has := theirs[user][id]; !has || wanted.After(at.Add(s.rules.Load().Keep()/8)) {
				errs = errors.Join(errs, s.give(ctx, p, user, id))
			}
		}
	}
	return errs
}

// Following are the rules while another controller leads, which says what stays.
func Following(free func() int64) Rules {
	return Rules{
		Free:   free,
		Most:   func(string) tree.Size { return tree.Size{} },
		Keep:   func() time.Duration { return math.MaxInt64 },
		Needed: func(string) (map[string]bool, error) { return nil, nil },
	}
}
