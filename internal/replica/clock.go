package replica

import (
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"sync"
	"time"

	"gbatch/oci/atomicfile"
	"gbatch/oci/boot"
)

// commonClock is how far the clock of who leads has come, as this member heard of it. It is kept
// in a file by the clock from boot: a member that leads soon after its own start
// would else take it that no time has passed since the last entry of its log.
type commonClock struct {
	read func() time.Duration // the machine's clock from boot
	boot string               // of the machine
	log  *slog.Logger

	mu     sync.Mutex
	path   string                  // of what is kept; "": nothing
	nowMS  int64                   // heard last; 0: nothing was
	steady time.Duration           // when it came, which may be long before it was agreed on
	first  map[int64]time.Duration // when those came of which none was agreed on, by what they show
	kept   time.Duration           // by how much it was ahead of the clock from boot
	keptAt time.Duration
}

// heardFile is in the directory of the common log, and keeps a commonClock.
const heardFile = "clock"

// What is kept is wrong by less than keepOff, and as old as keepEvery at most where entries come
// much faster than they were made, as to a member that was away.
const (
	keepOff   = 500 * time.Millisecond
	keepEvery = time.Second
)

type heardRecord struct {
	Boot    string `json:"boot"`
	AheadMS int64  `json:"aheadMs"` // of the clock from boot
}

func newCommonClock(log *slog.Logger) *commonClock {
	id, _ := boot.ID() // "": as of another boot each time
	return &commonClock{read: boot.Elapsed, boot: id, log: log}
}

// goOn takes what an earlier process has kept in the file, and keeps more there. Of another boot it is of
// no use: how long the machine was off is only known by a clock that can be set.
func (c *commonClock) goOn(path string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.path = path
	var r heardRecord
	err := atomicfile.ReadJSON(path, &r)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.log.Error("how far the controllers' clock had come cannot be read: it goes on from the common log's last entry; look at the disk", "error", err)
	}
	if err != nil || r.Boot == "" || r.Boot != c.boot {
		return
	}
	now := c.read()
	c.kept, c.keptAt = time.Duration(r.AheadMS)*time.Millisecond, now
	if nowMS := (now + c.kept).Milliseconds(); nowMS > c.nowMS {
		c.nowMS, c.steady = nowMS, now
	}
}

// hear takes in what the clock of who leads has shown. What is applied was mostly heard of
// when it came: between lies an election where its author was lost, and that time has
// passed, too. Old entries, which come after a start, change nothing.
func (c *commonClock) hear(nowMS int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if nowMS <= c.nowMS {
		return
	}
	c.nowMS, c.steady = nowMS, c.read()
	if came, ok := c.first[nowMS]; ok {
		c.steady = came
	}
	c.first = nil
	ahead := time.Duration(nowMS)*time.Millisecond - c.steady
	if c.path == "" || c.boot == "" || (ahead-c.kept).Abs() < keepOff || (c.keptAt != 0 && c.steady-c.keptAt < keepEvery) {
		return
	}
	// It need not be synced: after a loss of power it is of another boot.
	b, err := json.Marshal(heardRecord{c.boot, ahead.Milliseconds()})
	if err == nil {
		err = atomicfile.Write(c.path, atomicfile.Sum(b))
	}
	if err != nil {
		c.log.Debug("how far the controllers' clock has come is not kept", "file", c.path, "error", err)
	}
	c.kept, c.keptAt = ahead, c.steady // else a full disk would be asked with each entry
}

// maxFirst bounds the entries of which it is kept when they came before any was agreed on.
const maxFirst = 256

// hearOf is hear of what is not agreed on yet. Of the very first it is not known whether it ever will be: who takes another
// one's place then goes on by its own clock, and nobody may come back to the one before. Where it is, time counts from when it came.
func (c *commonClock) hearOf(nowMS int64) {
	c.mu.Lock()
	first := c.nowMS == 0
	if first && len(c.first) < maxFirst {
		if c.first == nil {
			c.first = map[int64]time.Duration{}
		}
		c.first[nowMS] = c.read()
	}
	c.mu.Unlock()
	if !first {
		c.hear(nowMS)
	}
}

// notBefore is where the clock of who led last has come to, by the time that has passed
// here since it was heard of; 0 where nothing was.
func (c *commonClock) notBefore() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.nowMS == 0 {
		return 0
	}
	return c.nowMS + (c.read() - c.steady).Milliseconds()
}
