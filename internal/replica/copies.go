package replica

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

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

const (
	copiesDir = "snapshots"
	saidFile  = "meta.json"
	sumFile   = "meta.sum"
	unmade    = ".tmp" // follows the name of a copy that is being made
)

func openCopies(dir string, log hclog.Logger) (copies, error) {
	kept, err := raft.NewFileSnapshotStoreWithLogger(dir, snapshotsKept, log)
	return copies{kept, filepath.Join(dir, copiesDir)}, err
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
	for _, e := range all {
		if e.IsDir() && !strings.HasSuffix(e.Name(), unmade) {
			if err := c.check(e.Name()); err != nil {
				return nil, err
			}
		}
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
