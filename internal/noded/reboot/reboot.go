// Package reboot reboots the machine when the controller says so and nothing of a job
// is left: once for each order, over restarts of the daemon. Whether the machine came
// back is the controller's to find, by its boot.
package reboot

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"

	"gbatch/internal/client"
	"gbatch/internal/node"
	"gbatch/internal/noded/program"
	"gbatch/oci/atomicfile"
)

// Options are what a reboot needs of the node.
type Options struct {
	File    string // keeps which order was followed
	Boot    string // of the machine
	Empty   func() bool
	Program func(context.Context) error // has the machine reboot, soon after it returned
	Changed func()                      // what Word says is another thing
	Log     *slog.Logger
}

// Reboots are those of one machine.
type Reboots struct {
	Options

	mu   sync.Mutex
	want uint64 // the order that stands; 0: none
	kept kept

	unknown bool // which order was followed last: its note was damaged
}

// kept is the order that was followed last.
type kept struct {
	Seq    uint64 `json:"seq"`
	Boot   string `json:"boot"`             // of the machine at the time
	Over   bool   `json:"over,omitempty"`   // the program has ended
	Failed string `json:"failed,omitempty"` // as this
}

// Open reads what an earlier daemon did.
func Open(o Options) *Reboots {
	r := &Reboots{Options: o}
	b, err := atomicfile.Read(o.File)
	if err == nil {
		err = json.Unmarshal(b, &r.kept)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		o.Log.Error("which reboot was ordered last is not known: the order that stands is not followed", "error", err)
		r.kept, r.unknown = kept{}, true
	}
	return r
}

// Ordered says which order stands; 0: none.
func (r *Reboots) Ordered(seq uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.want = seq
	if r.unknown && seq != 0 { // it may have been followed: rather not twice
		r.unknown = !r.save(kept{Seq: seq, Boot: r.Boot, Over: true, Failed: "the node's note of the last reboot was damaged, so this one may have been made: see to it, and order it again"})
	}
}

// Word is what the controller is told; nil: nothing.
func (r *Reboots) Word() *node.Reboot {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.kept.Failed == "" {
		return nil
	}
	return &node.Reboot{Seq: r.kept.Seq, Failed: r.kept.Failed}
}

// UnderWay says why nothing may begin; empty: the machine goes on.
func (r *Reboots) UnderWay() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.want == 0 || r.want != r.kept.Seq || r.kept.Boot != r.Boot || r.kept.Failed != "" {
		return ""
	}
	return "the machine is being rebooted"
}

// lookEvery is how often a machine that is to be rebooted is looked at.
const lookEvery = time.Second

// Run follows orders until ctx ends.
func (r *Reboots) Run(ctx context.Context) {
	for client.Sleep(ctx, lookEvery) == nil {
		if r.due() {
			r.reboot(ctx)
		}
	}
}

// due notes that the order that stands is followed from here on, if it is to be. One
// whose program was under way when the daemon was killed is followed again.
func (r *Reboots) due() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.want == 0 || r.want < r.kept.Seq:
		return false
	case r.want == r.kept.Seq:
		return r.kept.Boot == r.Boot && !r.kept.Over
	case !r.Empty():
		return false
	}
	return r.save(kept{Seq: r.want, Boot: r.Boot})
}

func (r *Reboots) reboot(ctx context.Context) {
	r.Log.Warn("the machine is rebooted, as an operator has ordered")
	err := r.Program(ctx)
	if ctx.Err() != nil {
		return // the daemon is told to end: by this reboot, or the next daemon goes on
	}
	r.mu.Lock()
	done := r.kept
	done.Over = true
	if err != nil {
		done.Failed = err.Error()
		r.Log.Error("the machine cannot be rebooted", "error", err)
	}
	r.save(done)
	r.mu.Unlock()
	r.Changed()
}

// save is called with mu held. Without the note nothing is done: an order must not be
// followed a second time after the boot.
func (r *Reboots) save(k kept) bool {
	b, err := json.Marshal(k)
	if err == nil {
		err = atomicfile.WriteDurable(r.File, atomicfile.Sum(b))
	}
	if err != nil {
		r.Log.Error("the machine is not rebooted, as that cannot be noted", "error", err)
		return false
	}
	r.kept = k
	return true
}

// System finds how this machine is rebooted where the site has no program for it.
func System() (path string, args []string, err error) {
	if st, err := os.Stat("/run/systemd/system"); err == nil && st.IsDir() {
		for _, path := range []string{"/usr/bin/systemctl", "/bin/systemctl"} {
			if program.Check(path) == nil {
				return path, []string{"reboot"}, nil
			}
		}
	}
	for _, path := range []string{"/usr/sbin/shutdown", "/sbin/shutdown"} {
		if program.Check(path) == nil {
			return path, []string{"-r", "now"}, nil
		}
	}
	return "", nil, errors.New("the machine has neither systemctl nor shutdown: name a program as reboot.path in gnoded.yaml")
}
