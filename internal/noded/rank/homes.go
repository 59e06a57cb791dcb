package rank

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"gbatch/cgroups"
	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/internal/noded/network"
	"gbatch/internal/noded/storage"
	"gbatch/oci"
	"gbatch/oci/draft"
)

// home is a container in which tasks of one array run one after the other. What it
// has on the host is that of the rank that ran there first, its owner, which is there
// until the container has ended; the ranks that come after it are guests.
type home struct {
	kept  *oci.Kept
	key   string
	owner *Rank
	net   *network.Attachment // the owner's, for its address; nil: the node's

	shown  storage.Shows // likewise
	mounts []draft.Mount // likewise

	// For the rank that runs there, and then the next one.
	cores   cgroups.CPUSet
	secrets uint32  // version of those in its file system
	used    float64 // seconds of processor time, by ranks that have ended

	rest *time.Timer // ends it; only while it is idle
}

// Homes are the containers of a node that can be used again. A nil one has none.
type Homes struct {
	mu     sync.Mutex // guards what follows
	all    map[*home]bool
	idle   []*home // the one that rested least is the last
	closed bool
}

// restTime is how long a container waits for its next task: the next one of an array
// comes with the answer to the end of the last. maxIdle is how many wait.
const (
	restTime = 5 * time.Second
	maxIdle  = 256
)

// add notes a container that has just been made.
func (h *Homes) add(x *home) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.all == nil {
		h.all = map[*home]bool{}
	}
	h.all[x] = true
	if h.closed {
		x.kept.Close()
	}
}

// offer makes a container that is free wait for its next task.
func (h *Homes) offer(x *home) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		x.kept.Close()
		return
	}
	if len(h.idle) >= maxIdle {
		h.close(h.idle[0])
	}
	x.rest = time.AfterFunc(restTime, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if slices.Contains(h.idle, x) {
			h.close(x)
		}
	})
	h.idle = append(h.idle, x)
}

// close ends a container that waits. It is called with mu held.
func (h *Homes) close(x *home) {
	x.rest.Stop()
	h.idle = slices.DeleteFunc(h.idle, func(o *home) bool { return o == x })
	x.kept.Close()
}

// has says whether a container waits for tasks of this kind.
func (h *Homes) has(key string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.ContainsFunc(h.idle, func(x *home) bool { return x.key == key })
}

// take gives a task one that waits, if possible on the cores that the task has.
func (h *Homes) take(key, digest string, cores cgroups.CPUSet) *home {
	h.mu.Lock()
	defer h.mu.Unlock()
	at := -1
	for i, x := range h.idle {
		if x.key != key || digest != "" && digest != x.owner.image.Digest {
			continue
		}
		if at = i; x.cores.String() == cores.String() {
			break
		}
	}
	if at < 0 {
		return nil
	}
	x := h.idle[at]
	x.rest.Stop()
	h.idle = slices.Delete(h.idle, at, at+1)
	return x
}

// dismiss ends a container if it waits for a task.
func (h *Homes) dismiss(x *home) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	waits := slices.Contains(h.idle, x)
	if waits {
		h.close(x)
	}
	return waits
}

// over forgets a container that has ended.
func (h *Homes) over(x *home) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.all, x)
}

// Idle is how many wait for a task.
func (h *Homes) Idle() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.idle)
}

// Close ends those that wait, and each of the others when its task has ended.
func (h *Homes) Close() {
	h.mu.Lock()
	h.closed = true
	idle := slices.Clone(h.idle)
	for x := range h.all {
		x.kept.Close()
	}
	h.mu.Unlock()
	for _, x := range idle {
		x.rest.Stop()
		<-x.kept.Gone()
	}
}

// shelter is what a rank has to do with a container that others run in, too. It is for
// the rank's own goroutine.
type shelter struct {
	home   *home // nil: the rank's container ends with it
	owned  bool  // the container is the rank's own, and others may run there after it
	homes  *Homes
	ready  bool            // the home can be used again, and was not offered yet
	guests <-chan struct{} // closed when the rank has ended that runs in this one's container by an earlier daemon's doing; nil: none does
}

// free says whether the container can be used again, now that the rank's program has
// ended. Otherwise it has ended.
func (x *shelter) free(c *oci.Container, cpuSeconds float64, secrets uint32) bool {
	if x.home == nil {
		return false
	}
	x.home.used += cpuSeconds
	x.home.secrets = secrets
	x.ready = x.home.kept.Free(c)
	return x.ready
}

// offer makes the container wait for its next task, if it can be used again.
func (x *shelter) offer() {
	if x.ready {
		x.ready = false
		x.homes.offer(x.home)
	}
}

// leave ends the container that the rank was to run in, if there is one.
func (x *shelter) leave() {
	if x.home != nil {
		x.home.kept.Close()
		x.home = nil
	}
}

// await waits until nobody runs any more in what was the rank's container. False
// means that the daemon goes first.
func (x *shelter) await(ctx context.Context, s *state) bool {
	gone := x.guests
	if x.owned {
		gone = x.home.kept.Gone()
	}
	if gone == nil {
		return true
	}
	select {
	case <-gone:
	case <-ctx.Done():
		if !x.owned || !x.homes.dismiss(x.home) {
			return false
		}
		<-gone
	}
	if x.owned {
		x.homes.over(x.home)
	}
	s.setSheltering(false)
	return true
}

// homeKey says in what containers a rank may run that ran others: in those of ranks
// with the same. Empty: in none but its own.
func (r *recipe) homeKey() string {
	if r.key == nil {
		r.key = new(homeKey(r.node, &r.order))
	}
	return *r.key
}

func homeKey(n *Node, o *order) string {
	if t := o.Spec.Tasks(); t == nil || !t.Reuse || o.Array == nil || o.Ranks > 1 || o.Alone || n.Homes == nil || n.Programs == "" {
		return ""
	}
	spec := &o.Spec
	if o.Document != "" { // its name says all of it, and costs nothing to read
		spec = nil
	}
	text, err := json.Marshal(struct {
		Spec                     *job.Spec
		Document                 string
		Parent                   job.Number
		User, Project, Partition string
		UID                      *uint32
		IDs                      uint32
		GID                      int
		Allocation               api.Allocation
	}{spec, o.Document, o.Array.Parent, o.User, o.Project, o.Partition, o.UID, o.IDs, o.ProjectGID, o.Allocation})
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// homeName is what hosts of an array are called whose tasks share containers.
func homeName(parent job.Number) string { return fmt.Sprintf("job-%d", parent) }
