package network

import (
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"gbatch/oci/netns"
	"gbatch/oci/userns"
)

// ahead makes networks before ranks need them. The kernel lets one network be made or
// taken away at a time, and takes long for the latter: where job follows job, each one's
// start waited for the end of the one before it. Nothing ever ran in what is kept here,
// and only a rank with the same ids gets it.
type ahead struct {
	own  *netns.Network
	most int
	log  *slog.Logger

	work sync.WaitGroup // what makes, marks and drops them

	mu     sync.Mutex // guards what follows
	ready  []*spare   // the oldest first
	lately []use
	drawn  int // names given
	timer  *time.Timer
	closed bool
}

// spare is a network without a rank, and the user namespace that it belongs to.
type spare struct {
	ids   userns.Map
	owner string // as the node's network knows it
	user  *os.File
	at    *netns.Attached
	since time.Time
}

// use is when a rank with these ids began last.
type use struct {
	ids userns.Map
	at  time.Time
}

// aheadFor is how long a network waits for a rank, and how soon after each other two
// ranks of one user have to begin for one to be made.
const aheadFor = 5 * time.Second

// take returns a network for a rank with these ids; nil: there is none.
func (a *ahead) take(ids userns.Map) *spare {
	a.mu.Lock()
	defer a.mu.Unlock()
	i := slices.IndexFunc(a.ready, func(s *spare) bool { return s.ids.Equal(ids) })
	if i < 0 {
		return nil
	}
	s := a.ready[i]
	a.ready = slices.Delete(a.ready, i, i+1)
	return s
}

// used notes that a rank with these ids begins, and has a network made for the next
// one if there was another a short while ago.
func (a *ahead) used(ids userns.Map) {
	if ids.IsZero() {
		return
	}
	now := time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lately = slices.DeleteFunc(a.lately, func(u use) bool { return now.Sub(u.at) > aheadFor })
	i := slices.IndexFunc(a.lately, func(u use) bool { return u.ids.Equal(ids) })
	if i < 0 {
		a.lately = append(a.lately, use{ids, now})
		return
	}
	a.lately[i].at = now
	if a.closed || len(a.ready) >= a.most {
		return
	}
	a.drawn++
	owner := fmt.Sprintf("ahead-%d", a.drawn)
	a.work.Go(func() { a.make(owner, ids) }) // waited for by close
}

func (a *ahead) make(owner string, ids userns.Map) {
	made, at, err := attachNew(a.own, owner, ids, nil)
	if err != nil {
		// The next rank makes its own, and says so if it cannot.
		a.log.Debug("make a network ahead", "error", err)
		return
	}
	s := &spare{ids: ids, owner: owner, user: made.User, at: at, since: time.Now()}
	a.mu.Lock()
	keep := !a.closed && len(a.ready) < a.most
	if keep {
		a.ready = append(a.ready, s)
		if a.timer == nil {
			a.timer = time.AfterFunc(aheadFor, a.expire)
		}
	}
	a.mu.Unlock()
	if !keep {
		a.drop(s)
	}
}

// mark has the kernel show whose a network has become, when it gets to it.
func (a *ahead) mark(owner string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return
	}
	a.work.Go(func() { // waited for by close
		if err := a.own.Mark(owner); err != nil {
			a.log.Debug("mark a network", "owner", owner, "error", err)
		}
	})
}

// expire drops what waited for too long.
func (a *ahead) expire() {
	a.mu.Lock()
	if a.closed {
		a.mu.Unlock()
		return // close drops them
	}
	a.work.Add(1) // waited for by close
	defer a.work.Done()
	var old []*spare
	now := time.Now()
	for len(a.ready) > 0 && now.Sub(a.ready[0].since) >= aheadFor {
		old, a.ready = append(old, a.ready[0]), a.ready[1:]
	}
	a.timer = nil
	if len(a.ready) > 0 {
		a.timer = time.AfterFunc(aheadFor-now.Sub(a.ready[0].since), a.expire)
	}
	a.mu.Unlock()
	for _, s := range old {
		a.drop(s)
	}
}

// clear drops all, and says whether there was any: they have addresses that a rank
// may need.
func (a *ahead) clear() bool {
	a.mu.Lock()
	all := a.ready
	a.ready = nil
	a.mu.Unlock()
	for _, s := range all {
		a.drop(s)
	}
	return len(all) > 0
}

// close drops all, for good.
func (a *ahead) close() {
	a.mu.Lock()
	a.closed = true
	if a.timer != nil {
		a.timer.Stop()
	}
	a.mu.Unlock()
	a.work.Wait()
	a.clear()
}

func (a *ahead) drop(s *spare) {
	if err := a.own.Detach(s.owner); err != nil {
		a.log.Error("remove a network that no rank needed", "error", err)
	}
	s.user.Close()
	s.at.Namespace.Close()
}
