package disk

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"gbatch/cgroups"
	"gbatch/internal/job"
	"gbatch/internal/noded/config"
	"gbatch/oci/rmtree"
)

// Disk is what ranks write on: a directory for each, and who may how much.
type Disk struct {
	cfg  *config.Config
	log  *slog.Logger
	dir  string // of the ranks' directories
	mode string // how these are held to their bounds: as config.Disk.Mode, but not auto
	over func(job.RankID, string)
	io   []cgroups.IODevice

	mu    sync.Mutex
	areas []*area
	ranks map[job.RankID]*space

	usual  int64       // bytes of a file system in a file that nobody asked to be larger
	empty  amount      // what is free on it at first
	slots  chan string // those that wait for a rank
	spoilt atomic.Bool // the disk was full: what was written to them may be lost
}

// Claim is what a rank needs.
type Claim struct {
	ID     job.RankID
	User   string // whose it is
	Asked  int64  // bytes that its job has reserved; 0: none
	Inputs string // a directory beside its own that it may write to; "": none
}

// space is what one rank may write.
type space struct {
	Claim
	parts []*part
	ended bool // it was told to end
}

// part is what a rank may write in one place.
type part struct {
	area    *area
	dirs    []string
	image   bool    // the directory is a file system of its own
	project project // 0: it has none. Without both, what is there is looked at

	base  int64 // bytes that were there before its program began
	limit int64 // that it may write beside them; 0: not bounded yet
	used  int64 // that it has written, as was seen last
}

// Open finds out how ranks can be held to their bounds. Their control groups are
// below base. over is told of ranks that have to be ended, and why; it must not
// wait.
func Open(cfg *config.Config, base string, log *slog.Logger, over func(id job.RankID, text string)) (*Disk, error) {
	d, err := newDisk(cfg)
	if err != nil {
		return nil, err
	}
	d.log, d.over = log, over
	if d.io, err = throttles(cfg, base); err != nil {
		return nil, err
	}
	a, err := d.area(d.dir)
	if err != nil {
		return nil, err
	}
	if err := d.choose(a); err != nil {
		d.log.Warn("what jobs write is looked at now and then, and no file system bounds it", "directory", d.dir, "error", err)
	}
	if a.lacks == nil {
		return d, sweepProjects(d.dir)
	}
	return d, nil
}

func newDisk(cfg *config.Config) (*Disk, error) {
	d := &Disk{cfg: cfg, dir: filepath.Join(cfg.StateDir, "disk"), ranks: map[job.RankID]*space{}, slots: make(chan string, maxSlots)}
	if err := os.MkdirAll(d.dir, 0o711); err != nil {
		return nil, fmt.Errorf("make the directory of what jobs write: %w", err)
	}
	return d, nil
}

// choose chooses the mode. The error says why it is the weakest though the site
// did not ask for that.
func (d *Disk) choose(a *area) error {
	d.mode = config.DiskWatch
	want := d.cfg.Disk.Mode
	if want == config.DiskWatch {
		return nil
	}
	var err error
	if want != config.DiskImage {
		if err = a.lacks; err == nil {
			d.mode = config.DiskQuota
			return nil
		}
	}
	if want != config.DiskQuota {
		d.usual = usualLimit(d.cfg, a.size)
		ierr := d.tryImages(d.usual)
		if ierr == nil {
			d.mode = config.DiskImage
			return nil
		}
		err = errors.Join(err, ierr)
	}
	return err
}

// rankDir is a rank's directory. Only root of the node may write in it; what the
// rank may write is in its subdirectories.
func (d *Disk) rankDir(id job.RankID) string { return filepath.Join(d.dir, id.String()) }

// Scratch is where what a container writes over its image goes.
func (d *Disk) Scratch(id job.RankID) string { return filepath.Join(d.rankDir(id), "box") }

// area is the file system of a directory that stays.
func (d *Disk) area(dir string) (*area, error) {
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return nil, fmt.Errorf("look at %s: %w", dir, err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if i := slices.IndexFunc(d.areas, func(a *area) bool { return a.dev == st.Dev }); i >= 0 {
		return d.areas[i], nil
	}
	a, err := openArea(dir, st.Dev)
	if err == nil {
		d.areas = append(d.areas, a)
	}
	return a, err
}

// Take makes a rank's directories. What is put there counts as the rank's own
// writing only after Bound.
func (d *Disk) Take(c Claim) error {
	s := &space{Claim: c}
	if err := d.take(s); err != nil {
		return fmt.Errorf("make room for what the rank writes: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ranks[c.ID] = s
	return nil
}

func (d *Disk) take(s *space) error {
	dir := d.rankDir(s.ID)
	err := d.drop(dir) // of an earlier try that ran nothing
	if err == nil && d.mode != config.DiskImage {
		err = os.Mkdir(dir, 0o711)
	}
	if err == nil && s.Inputs != "" {
		err = os.MkdirAll(s.Inputs, 0o700)
	}
	if err == nil {
		err = d.divide(s)
	}
	if err != nil {
		return err
	}
	for _, p := range s.parts {
		switch {
		case p.image:
			p.dirs[0], err = d.takeImage(dir, d.limit(s.Claim, p.area))
		case d.mode == config.DiskQuota && p.area.lacks == nil:
			p.project, err = assign(p.dirs)
		}
		if err != nil {
			return err
		}
	}
	return os.Mkdir(d.Scratch(s.ID), 0o700)
}

// divide finds the file systems of a rank's directories.
func (d *Disk) divide(s *space) error {
	dirs := []string{d.rankDir(s.ID)}
	if s.Inputs != "" { // first, as it may have a project of before a restart
		dirs = []string{s.Inputs, d.rankDir(s.ID)}
	}
	for _, dir := range dirs {
		a, err := d.area(filepath.Dir(dir))
		if err != nil {
			return err
		}
		isImage := d.mode == config.DiskImage && dir == d.rankDir(s.ID)
		i := slices.IndexFunc(s.parts, func(p *part) bool { return p.area == a && !isImage })
		if i < 0 {
			i = len(s.parts)
			s.parts = append(s.parts, &part{area: a, image: isImage})
		}
		s.parts[i].dirs = append(s.parts[i].dirs, dir)
	}
	return nil
}

// Offer is how much of the disk jobs can reserve: what images, logs and the cache
// of inputs may take on it, at most a quarter for each, and what shall stay free
// are others'.
func (d *Disk) Offer() int64 {
	own, err := d.area(d.dir)
	if err != nil {
		return 0
	}
	left := own.size - int64(d.cfg.MinFree)
	for dir, most := range map[string]config.Size{d.cfg.Images.Dir: d.cfg.Images.MaxSize, d.cfg.StateDir: d.cfg.Logs.KeepSize, d.cfg.Data.Dir: d.cfg.Data.CacheSize} {
		var st unix.Stat_t
		if unix.Stat(dir, &st) == nil && st.Dev == own.dev {
			left -= min(int64(most), own.size/4)
		}
	}
	return max(left, 0)
}

// Bound holds a rank to its bytes, beside what is in its directories already.
func (d *Disk) Bound(id job.RankID) error {
	d.mu.Lock()
	s := d.ranks[id]
	d.mu.Unlock()
	for _, p := range s.parts {
		base, err := p.size(1 << 62)
		limit := d.limit(s.Claim, p.area)
		if err == nil && p.project > 0 {
			err = p.area.bound(p.project, base.bytes+limit, base.files+filesOf(limit))
		}
		if err != nil {
			return fmt.Errorf("bound what the rank writes: %w", err)
		}
		d.mu.Lock()
		p.base, p.limit, p.used = base.bytes, limit, 0 // what was seen before was not its program's
		d.mu.Unlock()
	}
	return nil
}

// limit is how much a rank may write on a file system.
func (d *Disk) limit(c Claim, a *area) int64 {
	if c.Asked > 0 {
		return c.Asked
	}
	return usualLimit(d.cfg, a.size)
}

// usualLimit is how much a container may write that has not asked for more, on a
// file system of that size.
func usualLimit(cfg *config.Config, size int64) int64 {
	if l := int64(cfg.Disk.PerContainer); l > 0 {
		return l
	}
	return min(max(size/10, 1<<30), 100<<30)
}

// filesOf is how many files go with so many bytes, as ext4 is made for.
func filesOf(bytes int64) int64 { return max(bytes/(16<<10), 4096) }

// Restore takes in a rank that an earlier daemon began, if it had a directory
// here.
func (d *Disk) Restore(c Claim) {
	s := &space{Claim: c}
	if _, err := os.Stat(d.rankDir(c.ID)); err != nil {
		return // it is of an earlier version
	}
	if err := d.divide(s); err != nil {
		d.log.Warn("what the rank writes is not bounded any more", "rank", c.ID, "error", err)
	}
	for _, p := range s.parts {
		d.restore(s, p)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ranks[c.ID] = s
}

func (d *Disk) restore(s *space, p *part) {
	dir := d.rankDir(s.ID)
	p.limit = d.limit(s.Claim, p.area)
	if slices.Contains(p.dirs, dir) {
		p.dirs[slices.Index(p.dirs, dir)] = slotOf(dir)
		_, err := os.Stat(image(slotOf(dir)))
		if p.image = err == nil; p.image && !isMounted(dir) {
			if err := remountImage(slotOf(dir)); err != nil {
				d.log.Error("what the rank wrote before the restart is lost", "rank", s.ID, "error", err)
			}
		}
	}
	if p.image {
		return
	}
	if id := projectAt(p.dirs[0]); id.ours() {
		p.project = id
		if q, err := p.area.count(id); err == nil {
			p.base = max(0, int64(q.HardBlocks*quotaBlock)-p.limit)
		}
	} else if s.Inputs == p.dirs[0] { // what of it was fetched is not known any more
		p.base = measure([]string{s.Inputs}, 1<<50).bytes
	}
}

// Release removes what a rank has written. Its inputs are gone before.
func (d *Disk) Release(id job.RankID) error {
	if err := d.drop(d.rankDir(id)); err != nil {
		return fmt.Errorf("remove what the rank wrote: %w", err)
	}
	d.mu.Lock()
	s := d.ranks[id]
	delete(d.ranks, id)
	d.mu.Unlock()
	if s == nil {
		return nil
	}
	var err error
	for _, p := range s.parts {
		if p.project > 0 {
			err = errors.Join(err, p.area.bound(p.project, 0, 0))
		}
	}
	return err
}

// drop removes a rank's directory.
func (d *Disk) drop(dir string) error {
	if slot := slotOf(dir); slot != dir {
		if err := os.Remove(dir); err != nil { // a disk that turned read-only: at least nothing holds it
			return errors.Join(err, dropImage(slot))
		}
		return d.giveSlot(slot)
	}
	return dropAll(dir)
}

// dropAll removes a directory with the file system on it, if there is one.
func dropAll(dir string) error {
	if err := dropImage(dir); err != nil {
		return err
	}
	return rmtree.Remove(dir)
}

// Sweep removes the directories of ranks that are not held, and whatever else a
// crash has left beside them.
func (d *Disk) Sweep() error {
	entries, err := os.ReadDir(d.dir)
	if err != nil {
		return fmt.Errorf("look for what ranks left: %w", err)
	}
	used := map[string]bool{}
	d.mu.Lock()
	for id := range d.ranks {
		used[d.rankDir(id)], used[slotOf(d.rankDir(id))] = true, true
	}
	d.mu.Unlock()
	for _, e := range entries {
		path := filepath.Join(d.dir, strings.TrimSuffix(e.Name(), ".img"))
		if used[path] || path == d.blank() {
			continue
		}
		if slotOf(path) != path {
			err = errors.Join(err, os.Remove(path))
		} else {
			err = errors.Join(err, dropAll(path))
		}
	}
	return err
}
