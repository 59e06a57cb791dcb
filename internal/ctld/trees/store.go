package trees

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"gbatch/internal/api"
	"gbatch/internal/tree"
	"gbatch/oci/atomicfile"
)

// Config is where trees are kept.
type Config struct {
	Dir string
	Now func() time.Time
	Log *slog.Logger
}

// Rules are how trees are kept. One of several controllers has those of Following while
// another one leads.
type Rules struct {
	Most   func(user string) tree.Size                      // of all of a user's trees together; 0: no bound
	Free   func() int64                                     // bytes that stay free on the disk
	Keep   func() time.Duration                             // for which a tree stays that no job needs
	Needed func(user string) (ids map[string]bool, e error) // those that jobs need which are not over
	Others Others                                           // nil: this controller is the only one
}

// Store is the trees of all users.
type Store struct {
	Config
	rules atomic.Pointer[Rules]

	mu    sync.Mutex // guards users
	users map[string]*owner
}

// Rule has trees kept by other rules from now on.
func (s *Store) Rule(r Rules) { s.rules.Store(&r) }

// owner is what one user has. Its mutex is held while its files change.
type owner struct {
	name string
	dir  string

	mu     sync.Mutex // guards what follows, and the files
	chunks map[string]*chunk
	trees  map[string]*kept
	bytes  int64 // of its chunks and lists of chunks, as they are charged
	files  int64 // of its trees

	fetching sync.Mutex // held, before mu, while a tree is got of another controller
}

// chunk is one that is on disk.
type chunk struct {
	size  int64
	trees int       // that have it
	since time.Time // when it came, or a tree let go of it
}

// Kept is a tree that was looked through.
type Kept struct {
	tree.Manifest
	Files int64 `json:"files"`
	Bytes int64 `json:"bytes"` // of its files
}

// kept is a tree all of whose chunks are there.
type kept struct {
	Kept
	wanted time.Time // last, by a submission or a job
}

// Files of an owner's directory.
const (
	chunksDir   = "chunks"
	treeSuffix  = ".tree"
	leastCharge = 16 << 10 // for a chunk, as each is a file
)

func charge(size int64) int64 { return max(size, leastCharge) }

// perEntry is about what a chunk's name takes in a tree's list, on disk and in
// memory.
const perEntry = 128

// charge is for the list: of a few chunks that are there already, trees without
// number can be made.
func (k *kept) charge() int64 { return charge(perEntry * int64(len(k.Chunks))) }

// Open reads what there is.
func Open(c Config, r Rules) (*Store, error) {
	s := &Store{Config: c, users: map[string]*owner{}}
	s.Rule(r)
	if err := atomicfile.Dir(c.Dir, 0o700, c.Log); err != nil {
		return nil, fmt.Errorf("open uploaded directories: %w", err)
	}
	names, err := os.ReadDir(c.Dir)
	if err != nil {
		return nil, fmt.Errorf("open uploaded directories: %w", err)
	}
	for _, e := range names {
		name, err := hex.DecodeString(e.Name())
		if err != nil {
			continue // not ours
		}
		if _, err := s.owner(string(name)); err != nil { // it is tried again at each use of them
			c.Log.Error("the uploaded directories of a user cannot be used", "user", string(name), "directory", filepath.Join(c.Dir, e.Name()), "error", err)
		}
	}
	return s, nil
}

// owner is what a user has, which is nothing at first.
func (s *Store) owner(user string) (*owner, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.users[user]; o != nil {
		return o, nil
	}
	o := &owner{name: user, dir: filepath.Join(s.Dir, hex.EncodeToString([]byte(user))), chunks: map[string]*chunk{}, trees: map[string]*kept{}}
	if err := o.load(s.Now(), s.Log); err != nil {
		return nil, err
	}
	s.users[user] = o
	return o, nil
}

// load finds what is on disk. A file that was being written is left over. A tree that
// lacks a chunk, or whose list is damaged, is given up.
func (o *owner) load(now time.Time, log *slog.Logger) error {
	for _, dir := range []string{o.dir, filepath.Join(o.dir, chunksDir)} {
		if err := atomicfile.Dir(dir, 0o700, log); err != nil {
			return err
		}
	}
	err := filepath.WalkDir(filepath.Join(o.dir, chunksDir), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if !tree.IsSum(d.Name()) || info.Size() > tree.MaxChunk {
			return os.Remove(path)
		}
		o.chunks[d.Name()] = &chunk{size: info.Size(), since: now}
		o.bytes += charge(info.Size())
		return nil
	})
	if err != nil {
		return err
	}
	entries, err := os.ReadDir(o.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if id, is := strings.CutSuffix(e.Name(), treeSuffix); is {
			err = o.loadTree(id, log)
		} else if !e.IsDir() {
			err = os.Remove(filepath.Join(o.dir, e.Name()))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (o *owner) loadTree(id string, log *slog.Logger) error {
	path := o.treePath(id)
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	k := &kept{wanted: info.ModTime()}
	if json.Unmarshal(text, &k.Kept) != nil || k.ID() != id || len(o.missing(k.Manifest)) > 0 {
		log.Error("an uploaded directory is damaged and was given up: its user brings it again by submitting again", "directory", id, "user", o.name)
		return os.Remove(path)
	}
	o.put(id, k)
	return nil
}

func (o *owner) treePath(id string) string { return filepath.Join(o.dir, id+treeSuffix) }

func (o *owner) chunkPath(sum string) string {
	return filepath.Join(o.dir, chunksDir, sum[:2], sum)
}

// missing are the chunks of a manifest that are not there.
func (o *owner) missing(m tree.Manifest) (sums []string) {
	asked := map[string]bool{}
	for _, c := range m.Chunks {
		if have := o.chunks[c.Sum]; (have == nil || have.size != c.Size) && !asked[c.Sum] {
			asked[c.Sum] = true
			sums = append(sums, c.Sum)
		}
	}
	return sums
}

func (o *owner) put(id string, k *kept) {
	o.trees[id] = k
	o.files += k.Files
	o.bytes += k.charge()
	for _, c := range k.Chunks {
		o.chunks[c.Sum].trees++
	}
}

// errCorrupt says that bytes are not what they are called.
var errCorrupt = api.Errorf(api.CodeBadRequest, "the bytes have another SHA-256 than the path says").WithHint("send them again")

// put keeps a chunk of a user's. It is on disk when this returns.
func (s *Store) put(user, sum string, data []byte) error { return s.place(user, sum, data, s.room) }

// place keeps a chunk if there is room for it.
func (s *Store) place(user, sum string, data []byte, room func(*owner, tree.Size) error) error {
	switch {
	case !tree.IsSum(sum) || len(data) == 0 || len(data) > tree.MaxChunk:
		return api.Errorf(api.CodeBadRequest, "a chunk has 1 to %d bytes, and is named by its SHA-256", tree.MaxChunk)
	case tree.SumOf(data) != sum:
		return errCorrupt
	}
	o, err := s.owner(user)
	if err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if c := o.chunks[sum]; c != nil {
		c.since = s.Now() // somebody counts on it
		return nil
	}
	n := charge(int64(len(data)))
	if err := room(o, tree.Size{Bytes: n}); err != nil {
		return err
	}
	path := o.chunkPath(sum)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if err := atomicfile.WriteDurable(path, data); err != nil {
		return diskError(err)
	}
	o.chunks[sum] = &chunk{size: int64(len(data)), since: s.Now()}
	o.bytes += n
	return nil
}

func diskError(err error) error {
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return errFull
	}
	return err
}

var errFull = api.Errorf(api.CodeStorageFull, "the controller's disk has no room for uploaded directories").WithHint("an administrator can make room; storage that jobs mount does not need it")

// add makes a tree of chunks, and keeps it. If some are missing it says which,
// and has kept nothing.
func (s *Store) add(user string, m tree.Manifest) (id string, missing []string, err error) {
	if err := m.Check(); err != nil {
		return "", nil, api.Errorf(api.CodeBadRequest, "%v", err)
	}
	o, err := s.owner(user)
	if err != nil {
		return "", nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if missing = o.missing(m); len(missing) > 0 {
		return "", missing, nil
	}
	id = m.ID()
	if o.trees[id] != nil {
		return id, nil, s.want(o, id)
	}
	most := s.most(user)
	size, err := tree.Entries(o.open(m), most, nothing)
	if err != nil {
		return "", nil, api.Errorf(api.CodeBadRequest, "the uploaded directory cannot be used: %v", err)
	}
	k := &kept{Kept: Kept{Manifest: m, Files: size.Files, Bytes: size.Bytes}, wanted: s.Now()}
	for _, c := range m.Chunks { // what makes room must not take them away
		o.chunks[c.Sum].trees++
	}
	err = s.room(o, tree.Size{Files: k.Files, Bytes: k.charge()})
	for _, c := range m.Chunks {
		o.chunks[c.Sum].trees--
	}
	if err == nil {
		err = o.write(id, k)
	}
	if err != nil {
		return "", nil, err
	}
	return id, nil, nil
}

// write keeps a tree all of whose chunks are there. It is on disk when this returns.
func (o *owner) write(id string, k *kept) error {
	text, err := json.Marshal(k.Kept)
	if err != nil {
		return err
	}
	if err := o.syncDirs(); err != nil {
		return err
	}
	if err := atomicfile.WriteDurable(o.treePath(id), text); err != nil {
		return diskError(err)
	}
	if err := os.Chtimes(o.treePath(id), k.wanted, k.wanted); err != nil {
		return err
	}
	o.put(id, k)
	return nil
}

// syncDirs makes the directories survive a power cut that the chunks are in; what
// is in those does already.
func (o *owner) syncDirs() error {
	return errors.Join(atomicfile.SyncDir(filepath.Join(o.dir, chunksDir)), atomicfile.SyncDir(o.dir), atomicfile.SyncDir(filepath.Dir(o.dir)))
}

// Has says whether a user has a tree, which a job is about to need. Of several controllers
// a majority has it then.
func (s *Store) Has(ctx context.Context, user, id string) (bool, error) {
	has, err := s.here(user, id)
	if err == nil && !has {
		has, err = s.fetch(ctx, user, id)
	}
	if err != nil || !has {
		return false, err
	}
	return true, s.spread(ctx, user, id)
}

// here says whether a tree is on this controller's disk, and notes that it is needed.
func (s *Store) here(user, id string) (bool, error) {
	o, err := s.owner(user)
	if err != nil {
		return false, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.trees[id] == nil {
		return false, nil
	}
	return true, s.want(o, id)
}

// want notes that a tree is needed now.
func (s *Store) want(o *owner, id string) error {
	k := o.trees[id]
	k.wanted = s.Now()
	return os.Chtimes(o.treePath(id), k.wanted, k.wanted)
}
