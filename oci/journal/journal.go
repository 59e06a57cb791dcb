// Package journal is the one place of what is durable of guests: the programs that run in a kept
// container, one after the other. It is a file in the container's directory to which its owner and its
// shim append: what is to be known of a guest, that its program may have begun, how that ended, and
// that nobody asks for it any more. The shim locks it as long as it lives.
package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"gbatch/oci/atomicfile"
	"gbatch/oci/held"
	"gbatch/oci/result"
)

// File is its name.
const File = "guests"

// entry is one line.
type entry struct {
	Guest   string          `json:"guest"`
	Record  json.RawMessage `json:"record,omitempty"`
	BegunMS int64           `json:"begun,omitempty"`
	Exit    *result.Exit    `json:"exit,omitempty"`
	Over    bool            `json:"over,omitempty"`
}

// Guest is what a journal says of one.
type Guest struct {
	Name   string
	Record json.RawMessage // by its owner, as written last; nil: it is not there any more
	Begun  time.Time       // zero: its program did not begin
	Exit   *result.Exit    // nil: that is not known
	Over   bool            // nobody asks for it any more
}

// Journal is one that is open, to be appended to.
type Journal struct{ f *os.File }

// Create makes the journal of a container's directory so that it survives a power cut, and locks it.
func Create(dir string) (*os.File, error) {
	path := filepath.Join(dir, File)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("make the journal of guests: %w", err)
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		err = errors.Join(atomicfile.SyncDir(dir), atomicfile.SyncDir(filepath.Dir(dir)))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make the journal of guests: %w", err), f.Close())
	}
	return f, nil
}

// Env tells a shim by which number it has the journal.
const Env = "_GBATCH_JOURNAL"

// Handed is the journal that this process was handed; nil: none.
func Handed() *Journal {
	fd, err := strconv.Atoi(os.Getenv(Env))
	if err != nil {
		return nil
	}
	unix.CloseOnExec(fd)
	return Of(os.NewFile(uintptr(fd), File))
}

// Of is the journal that a file is, which was opened to be appended to.
func Of(f *os.File) *Journal { return &Journal{f} }

// Open opens the journal of a container's directory. Who wrote to it last may have died.
func Open(dir string) (*Journal, error) {
	f, err := os.OpenFile(filepath.Join(dir, File), os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		return nil, err
	}
	return &Journal{f}, nil
}

// Close closes the file.
func (j *Journal) Close() error { return j.f.Close() }

// room is what the file has of the disk for what will be written of a guest: a job that fills the
// disk must not lose how it ended.
const room = 16 << 10

// Record notes what is to be known of a guest, and that there is room for the rest. It is durable when
// the guest's program begins.
func (j *Journal) Record(guest string, record any) error {
	text, err := json.Marshal(record)
	if err != nil {
		return err
	}
	end, err := j.f.Seek(0, 2)
	if err == nil {
		err = unix.Fallocate(int(j.f.Fd()), unix.FALLOC_FL_KEEP_SIZE, end, int64(len(text))+room)
		if errors.Is(err, unix.EOPNOTSUPP) {
			err = nil
		}
	}
	if err != nil {
		return fmt.Errorf("make room in the journal of guests: %w", err)
	}
	return j.note(entry{Guest: guest, Record: text}, false)
}

// Begun notes durably that the guest's program may have begun.
func (j *Journal) Begun(guest string) error {
	return j.note(entry{Guest: guest, BegunMS: time.Now().UnixMilli()}, true)
}

// Ended notes how the guest ended, once. It is durable when the next one begins, or by Sync: until then a power
// cut makes of it a guest that was lost as it ran.
func (j *Journal) Ended(guest string, e result.Exit) error {
	return j.note(entry{Guest: guest, Exit: result.Stamp(e)}, false)
}

// Sync makes durable what was noted.
func (j *Journal) Sync() error {
	return os.NewSyscallError("sync the journal of guests", unix.Fdatasync(int(j.f.Fd())))
}

// Over notes that nobody asks for a guest any more.
func (j *Journal) Over(guest string) error { return j.note(entry{Guest: guest, Over: true}, false) }

// note appends a line by one write, with a sum, and begins with the end of the line before, which whoever
// wrote it may not have come to.
func (j *Journal) note(e entry, durable bool) error {
	line, err := lineOf(e)
	if err == nil {
		_, err = j.f.Write(line)
	}
	if err == nil && durable {
		err = unix.Fdatasync(int(j.f.Fd()))
	}
	if err != nil {
		return fmt.Errorf("write the journal of guests: %w", err)
	}
	return nil
}

func lineOf(e entry) ([]byte, error) {
	text, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, "\n%s %08x\n", text, sumOf(text)), nil
}

func sumOf(text []byte) uint32 { return crc32.Checksum(text, crc32.MakeTable(crc32.Castagnoli)) }

// Read gives the guests of a container's directory in the order of their first lines. The error wraps
// os.ErrNotExist where there is no journal, and atomicfile.ErrDamaged where a line is not what was written:
// then of a guest without an end it is not known whether its program has begun.
func Read(dir string) ([]*Guest, error) {
	text, err := os.ReadFile(filepath.Join(dir, File))
	if err != nil {
		return nil, err
	}
	guests, whole := parse(text)
	if !whole {
		return guests, fmt.Errorf("read the journal of guests in %s: %w", dir, atomicfile.ErrDamaged)
	}
	return guests, nil
}

// parse reads lines. What follows the last end of a line may be half of one, which a power cut or a
// full disk left: it says nothing.
func parse(text []byte) (list []*Guest, whole bool) {
	known := map[string]*Guest{}
	whole = true
	lines := bytes.Split(text, []byte{'\n'})
	for i, line := range lines {
		if len(line) == 0 {
			continue
		}
		e, ok := entryOf(line)
		if last := i == len(lines)-1; !ok && last {
			if e, ok = entryOf(line[:len(line)-1]); !ok { // else its end is what was changed
				continue
			}
		}
		if !ok {
			whole = false
			continue
		}
		g := known[e.Guest]
		if g == nil {
			g = &Guest{Name: e.Guest}
			known[e.Guest] = g
			list = append(list, g)
		}
		g.take(e)
	}
	return list, whole
}

func entryOf(line []byte) (e entry, ok bool) {
	at := bytes.LastIndexByte(line, ' ')
	if at < 0 || string(line[at+1:]) != fmt.Sprintf("%08x", sumOf(line[:at])) {
		return e, false
	}
	return e, json.Unmarshal(line[:at], &e) == nil && e.Guest != ""
}

func (g *Guest) take(e entry) {
	if e.Record != nil { // somebody asks for it, again where it did not begin before
		g.Record, g.Over = e.Record, false
	}
	if e.BegunMS > 0 {
		g.Begun = time.UnixMilli(e.BegunMS)
	}
	if e.Exit != nil && g.Exit == nil {
		g.Exit = e.Exit
	}
	g.Over = g.Over || e.Over
}

// Find gives one guest of a container's directory; without it the error wraps os.ErrNotExist.
func Find(dir, guest string) (*Guest, error) {
	list, err := Read(dir)
	if err != nil && !errors.Is(err, atomicfile.ErrDamaged) {
		return nil, err
	}
	for _, g := range list {
		if g.Name == guest {
			return g, err
		}
	}
	return nil, errors.Join(err, fmt.Errorf("guest %s: %w", guest, os.ErrNotExist))
}

// Shorten leaves of guests that nobody asks for how they ended, and what of their records is to be
// known for longer. No shim has the journal.
func Shorten(dir string, rest func(record json.RawMessage) any) error {
	list, err := Read(dir)
	if err != nil {
		return err
	}
	var text []byte
	for _, g := range list {
		e := entry{Guest: g.Name, Record: g.Record, Exit: g.Exit, Over: g.Over}
		if g.Over && g.Record != nil {
			if e.Record, err = json.Marshal(rest(g.Record)); err != nil {
				return err
			}
		}
		if !g.Begun.IsZero() {
			e.BegunMS = g.Begun.UnixMilli()
		}
		line, err := lineOf(e)
		if err != nil {
			return err
		}
		text = append(text, line...)
	}
	return atomicfile.WriteDurable(filepath.Join(dir, File), text)
}

// Take locks a journal, or returns held.ErrHeld: the container's shim lives.
func Take(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, File), os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, held.ErrHeld
		}
		return nil, fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	return f, nil
}

// Await returns when it is recorded how a guest ended, or no shim has the journal, or that cannot be known.
func Await(dir, guest string) {
	for wait := time.Millisecond; ; wait = min(2*wait, 100*time.Millisecond) {
		lock, err := Take(dir)
		if err == nil {
			lock.Close()
		}
		if !errors.Is(err, held.ErrHeld) {
			return
		}
		if g, _ := Find(dir, guest); g != nil && g.Exit != nil {
			return
		}
		time.Sleep(wait)
	}
}
