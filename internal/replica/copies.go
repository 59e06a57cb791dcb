package replica

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"gbatch/oci/atomicfile"
)

// copies are the copies of a store beside the log. raft checks the copy itself by what is said of it in another file, which also has its place
// in the log and the members, and passes over a copy of which it cannot read that file, as if there were none. Here
// that file has a sum, and a copy of which it is damaged is an error. Copies of earlier versions have none.
type copies struct {
	*raft.FileSnapshotStore
	dir string
}

// Members who were long away go on from copies. The log before the last one is dropped, but for its last entries.
const (
	copiesKept  = 1
	copyAfter   = 50_000           // entries
	copyEvery   = 10 * time.Minute // no sooner after the one before
	entriesKept = 10_000

	copyFirst = 2 * time.Second // after the start it is looked whether one is due
	copyLook  = 30 * time.Second
)

const (
	copiesDir = "snapshots"
	saidFile  = "meta.json"
	sumFile   = "meta.sum"
	unmade    = ".tmp" // follows the name of a copy that is being made
)

func openCopies(dir string, log hclog.Logger) (copies, error) {
	kept, err := raft.NewFileSnapshotStoreWithLogger(dir, copiesKept, log)
	return copies{kept, filepath.Join(dir, copiesDir)}, err
}

// makeCopies makes a copy whenever one is due, until ctx is done. It looks soon after the start, as each start reads
// all of the log behind the last copy: raft's own timer makes none where processes live for less than it runs.
func (r *Replica) makeCopies(ctx context.Context) {
	for wait := copyFirst; rest(ctx, wait); {
		wait = copyLook
		due, err := r.copyDue()
		if due && err == nil {
			err = r.raft.Snapshot().Error()
		}
		switch {
		case errors.Is(err, raft.ErrNothingNewToSnapshot): // it still reads what its store has
			wait = copyFirst
		case err != nil && ctx.Err() == nil:
			r.cfg.Log.Warn("the store is not copied, and the common log grows; it is tried again", "error", err)
		}
	}
}

// copyDue says whether the log is long, and the last copy not new.
func (r *Replica) copyDue() (bool, error) {
	snaps, err := openCopies(r.cfg.Dir, r.logger())
	if err != nil {
		return false, err
	}
	list, err := snaps.List()
	if err != nil || len(list) == 0 || r.raft.LastIndex()-list[0].Index < uint64(cmp.Or(r.cfg.Copy, copyAfter)) {
		return false, err
	}
	st, err := os.Stat(filepath.Join(snaps.dir, list[0].ID, sumFile))
	return r.cfg.Copy > 0 || err != nil || time.Since(st.ModTime()).Abs() >= copyEvery, nil // an earlier version's has no sum
}

// Create begins another copy.
func (c copies) Create(v raft.SnapshotVersion, index, term uint64, members raft.Configuration, since uint64, trans raft.Transport) (raft.SnapshotSink, error) {
	sink, err := c.FileSnapshotStore.Create(v, index, term, members, since, trans)
	if err != nil {
		return nil, err
	}
	return newCopy{sink, filepath.Join(c.dir, sink.ID())}, nil
}

// newCopy is one that is being made.
type newCopy struct {
	raft.SnapshotSink
	dir string
}

// Close ends it.
func (c newCopy) Close() error {
	if err := c.SnapshotSink.Close(); err != nil {
		return err
	}
	said, err := os.ReadFile(filepath.Join(c.dir, saidFile))
	if err != nil {
		return err
	}
	return atomicfile.WriteDurable(filepath.Join(c.dir, sumFile), sumOfSaid(said))
}

func sumOfSaid(said []byte) []byte {
	return fmt.Appendf(nil, "%08x\n", crc32.Checksum(said, castagnoli))
}

// List gives the copies, the newest first.
func (c copies) List() ([]*raft.SnapshotMeta, error) {
	all, err := os.ReadDir(c.dir)
	if err != nil {
		return nil, err
	}
	whole, lost := 0, error(nil)
	for _, e := range all {
		if !e.IsDir() || strings.HasSuffix(e.Name(), unmade) {
			continue
		}
		switch err := c.check(e.Name()); {
		case err == nil:
			whole++
		case errors.Is(err, fs.ErrNotExist): // as of one that is being removed, as there is a newer one
			lost = fmt.Errorf("what is known of a copy of the store is gone: %w: %s", err, again)
		default:
			return nil, err
		}
	}
	if whole == 0 && lost != nil {
		return nil, lost
	}
	return c.FileSnapshotStore.List()
}

// Open reads a copy.
func (c copies) Open(id string) (*raft.SnapshotMeta, io.ReadCloser, error) {
	if err := c.check(id); err != nil {
		return nil, nil, err
	}
	return c.FileSnapshotStore.Open(id)
}

// check looks whether what is said of a copy is as it was written.
func (c copies) check(id string) error {
	said, err := os.ReadFile(filepath.Join(c.dir, id, saidFile))
	if err != nil {
		return err
	}
	sum, err := os.ReadFile(filepath.Join(c.dir, id, sumFile))
	whole := string(sum) == string(sumOfSaid(said))
	if errors.Is(err, fs.ErrNotExist) {
		err, whole = nil, json.Unmarshal(said, &raft.SnapshotMeta{}) == nil
	}
	if err == nil && !whole {
		err = fmt.Errorf("what %s says of a copy of the store is damaged: %s", filepath.Join(c.dir, id, saidFile), again)
	}
	return err
}
