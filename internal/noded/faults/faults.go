// Package faults keeps what happened on the node that an operator has to see to,
// until the controller has noted it and has drained the node. It decides nothing
// about what is a fault.
package faults

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"sync"
	"time"

	"gbatch/internal/node"
	"gbatch/oci/atomicfile"
)

// maxFaults bounds those that the controller has not noted. The first says why the
// node is drained, so the last go.
const maxFaults = 16

// Faults are those of one node. They outlive the daemon in a file.
type Faults struct {
	file string
	log  *slog.Logger

	mu   sync.Mutex
	kept kept
}

type kept struct {
	Next uint64       `json:"next"` // the number of the next one
	List []node.Fault `json:"list,omitempty"`
}

// Open reads what an earlier daemon has not told, or not told for certain.
func Open(file string, now time.Time, log *slog.Logger) *Faults {
	f := &Faults{file: file, log: log, kept: kept{Next: 1}}
	b, err := atomicfile.Read(file)
	if errors.Is(err, fs.ErrNotExist) {
		return f
	}
	if err == nil {
		err = json.Unmarshal(b, &f.kept)
	}
	if err != nil { // the jobs here must go on; what it was, an operator finds in the log
		f.kept = kept{Next: uint64(now.UnixMilli())} // above all that the controller has noted
		f.Note(fmt.Sprintf("what the node was to be drained for cannot be read any more: %v", err))
	}
	return f
}

// Note notes a fault. It is on disk when this returns, or in the log that it is not:
// then a restart of the daemon before the controller has heard of it would forget it.
func (f *Faults) Note(text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.log.Error("the node is to be drained", "reason", text)
	if len(f.kept.List) >= maxFaults {
		return
	}
	f.kept.List = append(slices.Clip(f.kept.List), node.Fault{Seq: f.kept.Next, Text: text})
	f.kept.Next++
	f.save()
}

// List is what the controller has not noted yet.
func (f *Faults) List() []node.Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.kept.List
}

// Noted says up to which one the controller has noted them.
func (f *Faults) Noted(seq uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	left := slices.DeleteFunc(slices.Clone(f.kept.List), func(one node.Fault) bool { return one.Seq <= seq })
	if len(left) == len(f.kept.List) {
		return
	}
	f.kept.List = left
	f.save()
}

// save is called with mu held.
func (f *Faults) save() {
	b, err := json.Marshal(f.kept)
	if err == nil {
		err = atomicfile.WriteDurable(f.file, atomicfile.Sum(b))
	}
	if err != nil {
		f.log.Error("a restart of the daemon could forget what the node is to be drained for", "error", err)
	}
}
