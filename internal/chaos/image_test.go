package chaos

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	"gbatch/internal/job"
	"gbatch/oci/lease"
)

// A node's machine may be put back from an image of its disk: what a power cut would have left of it at a moment before.

// These are the faults. What the node says is lost in one of them from when it is given a rank, so that nobody hears that it begins.
const (
	imaged  = "put a node back on an image"
	unheard = "put a node back on an image, unheard"

	oldStore = "put a controller's store back" // and not its log
)

// nodeImage is one.
type nodeImage struct {
	dir      string
	platter  *platter
	harmed   map[string]bool
	files    map[string][]written
	lease    lease.Lease
	ranks    map[job.RankID]*rank
	instance int
	made     time.Duration
}

// drawImages adds images that are put back to the faults of a history, each about as often as one of the others.
func (h *history) drawImages(every time.Duration) {
	r := rand.New(rand.NewPCG(h.seed, 13))
	of := []kind{{imaged, true, 4 * time.Minute, 0}, {unheard, true, 30 * time.Second, 0}}
	for _, f := range (drawing{of, h.nodes, h.lasts, 16 * every}).draw(r) {
		h.faults = append(h.faults, f.ofImage(r))
	}
	if h.controllers == 0 {
		return
	}
	r = rand.New(rand.NewPCG(h.seed, 15))
	for _, f := range (drawing{[]kind{{oldStore, true, time.Minute, 0}}, h.controllers + 1, h.lasts, 32 * every}).draw(r) {
		f.ctl = true
		h.faults = append(h.faults, f.ofImage(r))
	}
}

// ofImage begins when the image is made: a second to an hour before, as many of one length as of ten times that.
func (f fault) ofImage(r *rand.Rand) fault {
	const least, most = float64(time.Second), float64(time.Hour)
	f.by = min(f.at, time.Duration(least*math.Pow(most/least, r.Float64())))
	f.at -= f.by
	return f
}

// putBack has the machine crash when an image of now is so old, and come back on that.
func (m *machine) putBack(f fault) {
	m.mu.Lock()
	image, err := m.image()
	m.mu.Unlock()
	m.must(err)
	if err != nil || m.w.sleep(f.by) != nil {
		return
	}
	if f.kind == unheard {
		if !m.given() {
			return
		}
		lost := fault{kind: "lose a node's requests", on: f.on}
		m.w.net.add(lost, 1)
		defer m.w.net.add(lost, -1)
		_ = m.w.sleep(between(m.w.draw("unheard", m.name), time.Second, 20*time.Second))
	}
	m.w.audit.fault(f.kind)
	m.w.note("%s is put back on what its disk was %s before", m.name, (m.w.now() - image.made).Round(time.Millisecond))
	m.crash(f.lasts, func() {
		m.must(m.disk.become(image))
		m.lease, m.ranks, m.instance = image.lease, image.ranks, image.instance
		if !m.w.plant.wordApart {
			m.files = image.files
		}
		m.cut()
		m.images = append(m.images, putBack{image.made, m.w.now()})
	})
}

// given waits until the node has been given a rank, and says whether it was within a minute.
func (m *machine) given() bool {
	const step = 100 * time.Millisecond
	for from := m.w.now(); m.w.now() < from+time.Minute; {
		if m.w.sleep(step) != nil {
			return false
		}
		m.mu.Lock()
		told := m.told
		m.mu.Unlock()
		if told >= from {
			return true
		}
	}
	return false
}

// putBack is an image that was put back.
type putBack struct{ made, at time.Duration }

// image copies the disk.
func (m *machine) image() (*nodeImage, error) {
	m.made++
	out := &nodeImage{dir: fmt.Sprintf("%s.image%d", m.disk.dir, m.made), harmed: maps.Clone(m.disk.harmed), files: m.flushed(m.w.draw("image", m.name)), lease: m.lease,
		ranks: map[job.RankID]*rank{}, instance: m.instance, made: m.w.now()}
	for id, r := range m.ranks { // into a map
		out.ranks[id] = r.copied()
	}
	var err error
	out.platter, err = m.disk.platter.copied(out.dir)
	return out, err
}

// copied is the rank as it is now.
func (r *rank) copied() *rank {
	out := *r
	if r.stop != nil {
		s := *r.stop
		out.stop = &s
	}
	if r.exit != nil {
		e := *r.exit
		out.exit = &e
	}
	return &out
}

// become has the disk be an image.
func (d *nodeDisk) become(i *nodeImage) error {
	if err := os.RemoveAll(d.dir); err != nil {
		return err
	}
	if err := os.Rename(i.dir, d.dir); err != nil {
		return err
	}
	d.harmed = i.harmed
	d.platter.mu.Lock()
	defer d.platter.mu.Unlock()
	d.platter.files, d.platter.dirs = i.platter.files, i.platter.dirs
	return nil
}

// copied is a copy of all that there is, below another root, of which the same survives a power cut.
func (p *platter) copied(root string) (*platter, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := platterCopy{of: map[fileID]fileID{}}
	if err := c.tree(p.root, root); err != nil {
		return nil, err
	}
	out := &platter{root: root, files: map[fileID][]byte{}, dirs: map[fileID]map[string]named{}}
	for id, text := range p.files { // into a map
		out.files[c.now(id)] = text
	}
	for id, list := range p.dirs { // into a map
		dir := map[string]named{}
		for name, is := range list { // into a map
			dir[name] = named{c.now(is.id), is.dir}
		}
		out.dirs[c.now(id)] = dir
	}
	return out, nil
}

// platterCopy is one under way, by which file is a copy of which.
type platterCopy struct{ of map[fileID]fileID }

// now is the copy of a file; of one that is gone, itself.
func (c platterCopy) now(id fileID) fileID {
	if to, ok := c.of[id]; ok {
		return to
	}
	return id
}

func (c platterCopy) tree(from, to string) error {
	if err := os.Mkdir(to, 0o700); err != nil {
		return err
	}
	list, err := os.ReadDir(from)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	for _, e := range list {
		a, b := filepath.Join(from, e.Name()), filepath.Join(to, e.Name())
		if e.IsDir() {
			err = c.tree(a, b)
		} else if err = copyFile(a, b); err == nil {
			err = c.same(a, b)
		}
		if err != nil {
			return err
		}
	}
	if len(list) == 0 && err != nil {
		return nil // nothing is there yet
	}
	return c.same(from, to)
}

func copyFile(from, to string) error {
	text, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, text, 0o600)
	}
	return err
}

func (c platterCopy) same(from, to string) error {
	a, err := look(from)
	if err != nil {
		return err
	}
	b, err := look(to)
	c.of[a.id] = b.id
	return err
}

// kernelHolds is for how long what was written to a file of the exchange is in memory alone.
const kernelHolds = 30 * time.Second

// written is what a file was written with.
type written struct {
	at   time.Duration
	text []byte
}

// flushed is what a power cut leaves of the exchange's files: what was written up to some moment that is not longer ago than
// the kernel holds it, or nothing.
func (m *machine) flushed(r *rand.Rand) map[string][]written {
	out := map[string][]written{}
	for _, path := range slices.Sorted(maps.Keys(m.files)) {
		until, whole := m.w.now()-between(r, 0, kernelHolds), r.IntN(4) > 0
		for _, w := range m.files[path] {
			if w.at <= until && whole {
				out[path] = []written{w}
			}
		}
	}
	return out
}

// wrote notes what a file is written with, and forgets what no power cut can bring back.
func (m *machine) wrote(path string, text []byte) {
	past := append(m.files[path], written{m.w.now(), text})
	for len(past) > 1 && past[1].at <= m.w.now()-kernelHolds {
		past = past[1:]
	}
	m.files[path] = past
}

// unknowable says whether nobody can tell a machine that was put back on an image since a rank began there, with its order then,
// from one that lost its power before it had that: the image was made just before the order came, see fit.Older and fit.Patience.Fresh.
func (m *machine) unknowable(b begun) bool {
	const late = 10 * time.Second // messages
	bound := b.told - m.w.audit.suspect - time.Minute - late
	return slices.ContainsFunc(m.images, func(i putBack) bool { return i.at >= b.at && i.made >= bound })
}
