package rank

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strconv"
	"sync"
)

// kills counts which processes that the container's memory limit has ended were of
// steps. The kernel takes those first, see firstToEnd: so those that it ended while
// tasks ran here are theirs, and all others the script's.
type kills struct {
	read func() uint64 // how many there were in the container

	mu    sync.Mutex
	begun int    // steps
	tasks int    // of theirs
	seen  uint64 // how many there were when it was looked last
	steps uint64
}

// begin takes in that a step begins. It returns how many there were before it.
func (k *kills) begin() uint64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.look(0)
	k.begun++
	return k.seen
}

// end takes in that it has ended.
func (k *kills) end() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.begun--
}

// task takes in that one is about to begin.
func (k *kills) task() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.look(0)
	k.tasks++
}

// ended takes in that a task has ended, by SIGKILL or else. If the limit ended the last
// one, others were ended after it: the script's.
func (k *kills) ended(killed bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	most := uint64(0)
	if killed && k.tasks == 1 {
		most = 1
	}
	k.look(most)
	k.tasks--
}

// look is called with mu held. Of what is new, steps have at most so many; 0: all.
func (k *kills) look(most uint64) {
	now := k.read()
	if k.tasks > 0 && now > k.seen {
		theirs := now - k.seen
		if most > 0 {
			theirs = min(theirs, most)
		}
		k.steps += theirs
	}
	k.seen = now
}

// ofSteps is how many there have been.
func (k *kills) ofSteps() uint64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.look(0)
	return k.steps
}

// since says how many there were from a step's begin to when a task ended last, and
// whether it is the only one here, so that they are its.
func (k *kills) since(before uint64) (n uint64, only bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.seen - min(before, k.seen), k.begun == 1
}

// oomFiles have the count of this container, with v2 of control groups and v1.
var oomFiles = [...]string{"/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"}

// readKills is 0 where the container does not see its control group.
func readKills() uint64 {
	for _, name := range oomFiles {
		if text, err := os.ReadFile(name); err == nil {
			return killsIn(text)
		}
	}
	return 0
}

func killsIn(text []byte) uint64 {
	for in := bufio.NewScanner(bytes.NewReader(text)); in.Scan(); {
		if number, ok := bytes.CutPrefix(in.Bytes(), []byte("oom_kill ")); ok {
			n, _ := strconv.ParseUint(string(number), 10, 64) // the kernel's
			return n
		}
	}
	return 0
}

// firstToEnd has the kernel end what is begun now before anything else of the container,
// which has 0, where that has no more memory. It returns what sets this process back.
func firstToEnd() (back func()) {
	const file = "/proc/self/oom_score_adj"
	was, err := os.ReadFile(file)
	if err != nil || os.WriteFile(file, []byte("1000"), 0) != nil {
		return func() {}
	}
	return func() {
		if err := os.WriteFile(file, was, 0); err != nil {
			fmt.Fprintln(os.Stderr, "gbatch-rank:", err)
		}
	}
}
