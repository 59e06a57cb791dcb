package replica

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/hashicorp/raft-wal/metadb"
	"github.com/hashicorp/raft-wal/types"
	"golang.org/x/sys/unix"

	"gbatch/oci/atomicfile"
)

// metaFile keeps which files the log has, and what raft keeps beside it: its term, and for whom this member voted in that. The
// log's library has a database for this, of which nothing tells that the disk has changed it: a member could vote twice, and take its
// log for an empty one, and remove it. Here two places in one file have the same text, each with a sum. They are written, and synced, one
// after the other, so that one of them is whole whatever a power cut or the disk does to the other one. It is a types.MetaStore.
type metaFile struct {
	log *slog.Logger

	mu     sync.Mutex
	file   *os.File
	now    meta
	broken error // a write failed: what is on the disk is not known
}

// meta is what is kept.
type meta struct {
	Writes uint64                // how many there were
	Log    types.PersistentState // of the library
	Raft   map[string][]byte     // by raft's names
}

const (
	metaName  = "wal-meta.db" // that of the library's: an older program does not begin a new log beside it
	metaMark  = "gbatch1\n"
	metaHead  = len(metaMark) + 8 // with the text's length and sum
	metaRoom  = 1 << 20           // of each place
	boltMark  = "\xed\xda\x0c\xed"
	boltAfter = 16 // bytes of a page
)

// errMeta is of a file that is no more as it was written.
var errMeta = fmt.Errorf("%w: what is known of its files, and how this controller voted, is damaged", types.ErrCorrupt)

// Load opens the file of a directory, which is made if there is none.
func (m *metaFile) Load(dir string) (types.PersistentState, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	path := filepath.Join(dir, metaName)
	err := m.open(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = m.begin(dir)
	}
	if err != nil {
		return types.PersistentState{}, fmt.Errorf("%s: %w", path, err)
	}
	return m.now.Log, nil
}

// begin makes the file, of a log that has none yet.
func (m *metaFile) begin(dir string) error {
	if logs, err := filepath.Glob(filepath.Join(dir, "*.wal")); err != nil || len(logs) > 0 {
		return errors.Join(fmt.Errorf("%w: it is gone", errMeta), err)
	}
	return m.make(filepath.Join(dir, metaName))
}

// open reads the file. Of two places that differ the newer one counts: the other one was not written to its end, or is damaged.
func (m *metaFile) open(path string) (err error) {
	if m.file, err = os.OpenFile(path, os.O_RDWR, 0); err != nil {
		m.file = nil
		return err
	}
	first, err1 := m.read(0)
	second, err2 := m.read(1)
	if err1 != nil && err2 != nil {
		if m.ofLibrary() {
			return m.takeOver(path)
		}
		return errMeta
	}
	m.now = first
	if err1 != nil || second.Writes > first.Writes {
		m.now = second
	}
	if err1 == nil && err2 == nil && first.Writes == second.Writes {
		return nil
	}
	m.log.Warn("one of two texts in a file of the common log is not whole, and is written again: the controller ended while it was written, or the disk has changed it", "file", path)
	return m.write(m.now)
}

// read gives what is in one of the two places.
func (m *metaFile) read(place int64) (out meta, err error) {
	head := make([]byte, metaHead)
	if _, err := m.file.ReadAt(head, place*metaRoom); err != nil || string(head[:len(metaMark)]) != metaMark {
		return out, errors.Join(errMeta, err)
	}
	size, sum := binary.BigEndian.Uint32(head[len(metaMark):]), binary.BigEndian.Uint32(head[len(metaMark)+4:])
	if size > metaRoom-uint32(metaHead) {
		return out, errMeta
	}
	text := make([]byte, size)
	if _, err := m.file.ReadAt(text, place*metaRoom+int64(metaHead)); err != nil || crc32.Checksum(text, castagnoli) != sum {
		return out, errors.Join(errMeta, err)
	}
	return out, json.Unmarshal(text, &out)
}

// write puts a text into both places.
func (m *metaFile) write(next meta) error {
	if m.broken != nil {
		return m.broken
	}
	next.Writes = m.now.Writes + 1
	text, err := json.Marshal(next)
	if err == nil && len(text) > metaRoom-metaHead {
		err = fmt.Errorf("the common log has too many files to be written down: %d", len(next.Log.Segments))
	}
	if err != nil {
		return err
	}
	head := binary.BigEndian.AppendUint32([]byte(metaMark), uint32(len(text)))
	text = append(binary.BigEndian.AppendUint32(head, crc32.Checksum(text, castagnoli)), text...)
	for place := range int64(2) {
		if _, err = m.file.WriteAt(text, place*metaRoom); err == nil {
			err = unix.Fdatasync(int(m.file.Fd()))
		}
		if err != nil {
			m.broken = fmt.Errorf("write to %s: %w", m.file.Name(), err)
			return m.broken
		}
	}
	m.now = next
	return nil
}

// make begins the file with what is known. It is there as a whole or not at all.
func (m *metaFile) make(path string) (err error) {
	part := path + ".new"
	if m.file, err = os.OpenFile(part, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600); err != nil {
		m.file = nil
		return err
	}
	if err := m.write(m.now); err != nil {
		return err
	}
	return errors.Join(m.file.Sync(), os.Rename(part, path), atomicfile.SyncDir(filepath.Dir(path)))
}

// ofLibrary says that the file is the library's database.
func (m *metaFile) ofLibrary() bool {
	for page := range int64(2) {
		mark := make([]byte, len(boltMark))
		if _, err := m.file.ReadAt(mark, page*int64(os.Getpagesize())+boltAfter); err == nil && string(mark) == boltMark {
			return true
		}
	}
	return false
}

// takeOver puts a file in the place of the library's database, with what is in that.
func (m *metaFile) takeOver(path string) error {
	err := m.file.Close()
	m.file = nil
	old := &metadb.BoltMetaDB{}
	if err == nil {
		m.now.Log, err = old.Load(filepath.Dir(path))
	}
	m.now.Raft = map[string][]byte{}
	for _, key := range []string{"CurrentTerm", voteTerm, "LastVoteCand"} {
		var value []byte
		if err == nil {
			value, err = old.GetStable([]byte(key))
		}
		if value != nil {
			m.now.Raft[key] = value
		}
	}
	if err = errors.Join(err, old.Close()); err != nil {
		return err
	}
	return m.make(path)
}

// CommitState keeps which files the log has.
func (m *metaFile) CommitState(s types.PersistentState) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	next := m.now
	next.Log = s
	return m.write(next)
}

// SetStable keeps something of raft's; nil: no longer.
func (m *metaFile) SetStable(key, value []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	next := m.now
	next.Raft = maps.Clone(m.now.Raft)
	if next.Raft == nil {
		next.Raft = map[string][]byte{}
	}
	next.Raft[string(key)] = bytes.Clone(value)
	if value == nil {
		delete(next.Raft, string(key))
	}
	return m.write(next)
}

// GetStable gives it; nil: there is none.
func (m *metaFile) GetStable(key []byte) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.now.Raft[string(key)]), nil
}

// Close ends it.
func (m *metaFile) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.file == nil {
		return nil
	}
	f := m.file
	m.file = nil
	return f.Close()
}

var _ types.MetaStore = (*metaFile)(nil)
