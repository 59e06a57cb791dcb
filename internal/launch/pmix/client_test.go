package pmix

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"gbatch/internal/launch"
)

// ranks are the servers of a step, with somebody between them as srun is.
type ranks struct {
	mu      sync.Mutex
	servers []*Server
	fences  map[string]map[int]bool
	data    map[string]map[int][]byte
	aborts  []string
	aborted chan struct{} // closed at the first abort
	printed bytes.Buffer
	only    string // the one variable by which tasks find their server; empty: all
}

// newRanks serves a step with so many tasks on each of two nodes.
func newRanks(t *testing.T, each int) *ranks {
	t.Helper()
	r := &ranks{fences: map[string]map[int]bool{}, data: map[string]map[int][]byte{}, aborted: make(chan struct{})}
	layout := launch.Layout{Step: 3, Tasks: 2 * each}
	for k := range 2 {
		at := launch.Placed{Rank: k}
		for i := range each {
			at.Tasks = append(at.Tasks, launch.Task{ID: k*each + i, Local: i})
		}
		layout.Placed = append(layout.Placed, at)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for k := range 2 {
		s, err := Listen(Config{Space: "slurm.pmix.7.3.secret", Job: "7.3", Layout: layout, Own: k, Nodes: []string{"n1", "n2"},
			Send: func(task int, m launch.PMIx) { r.said(k, task, m) },
			Print: func(_ int, _ bool, text string) {
				r.mu.Lock()
				defer r.mu.Unlock()
				r.printed.WriteString(text)
			}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		r.servers = append(r.servers, s)
	}
	return r
}

// ends are what ended the step, and what tasks had logged.
func (r *ranks) ends() (aborts []string, printed string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.aborts), r.printed.String()
}

func (r *ranks) said(from, task int, m launch.PMIx) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case m.Abort != nil:
		if r.aborts = append(r.aborts, fmt.Sprint(task, " ", m.Abort.Text)); len(r.aborts) == 1 {
			close(r.aborted)
		}
	case m.Want != nil && m.Want.Done:
		r.servers[m.Want.From].Receive(m)
	case m.Want != nil:
		r.servers[1-from].Receive(m)
	case m.Fence != nil:
		key := fmt.Sprint(m.Fence.Tasks)
		if r.fences[key] == nil {
			r.fences[key], r.data[key] = map[int]bool{}, map[int][]byte{}
		}
		maps.Copy(r.data[key], m.Fence.Data)
		if m.Fence.More {
			return
		}
		if r.fences[key][from] = true; len(r.fences[key]) < 2 {
			return
		}
		all := launch.PMIxFence{Tasks: m.Fence.Tasks, Data: r.data[key]}
		delete(r.fences, key)
		delete(r.data, key)
		for _, s := range r.servers {
			for _, part := range all.Parts() {
				s.Receive(part)
			}
		}
	}
}

// run runs a program as all tasks, to their end or a little beyond an abort. It
// returns what they wrote, in order, and their exit codes.
func (r *ranks) run(t *testing.T, args ...string) (out, errs string, codes []int) {
	t.Helper()
	var all sync.WaitGroup
	var mu sync.Mutex
	var wrote, complained strings.Builder
	codes = make([]int, r.servers[0].c.Layout.Tasks)
	for id := range codes {
		s := r.servers[2*id/len(codes)]
		cmd := exec.Command(args[0], args[1:]...)
		for k, v := range s.Env(id) {
			if r.only == "" || k == r.only || !strings.HasPrefix(k, "PMIX_SERVER_URI") {
				cmd.Env = append(cmd.Env, k+"="+v)
			}
		}
		cmd.Env = append(cmd.Env, "PATH="+os.Getenv("PATH"), "TMPDIR="+t.TempDir())
		var o, e bytes.Buffer
		cmd.Stdout, cmd.Stderr = &o, &e
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		over := make(chan struct{})
		go func() { // ends with the program
			select {
			case <-r.aborted:
				_ = cmd.Process.Kill()
			case <-time.After(time.Minute):
				_ = cmd.Process.Kill()
			case <-over:
			}
		}()
		all.Go(func() { // awaited below
			_ = cmd.Wait()
			close(over)
			s.Ended(id)
			mu.Lock()
			defer mu.Unlock()
			codes[id] = cmd.ProcessState.ExitCode()
			wrote.WriteString(o.String())
			complained.WriteString(e.String())
		})
	}
	all.Wait()
	lines := strings.SplitAfter(wrote.String(), "\n")
	slices.SortStableFunc(lines, func(a, b string) int { return cmp.Compare(before(a), before(b)) })
	return strings.Join(lines, ""), complained.String(), codes
}

func before(line string) string { task, _, _ := strings.Cut(line, ":"); return task }

// client compiles the program in testdata with the library of this machine.
func client(t *testing.T) string {
	t.Helper()
	flags, err := exec.Command("pkg-config", "--cflags", "--libs", "pmix").Output()
	if err != nil {
		t.Skip("NOT TESTED: there is no PMIx library with headers here: apt-get install libpmix-dev gcc pkg-config")
	}
	to := filepath.Join(t.TempDir(), "client")
	args := append([]string{"-o", to, "testdata/client.c"}, strings.Fields(string(flags))...)
	if out, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
		t.Fatalf("compile: %v: %s", err, out)
	}
	return to
}

// TestClient: tasks with the PMIx library of this machine on two nodes learn of
// their job, and read what the others have put, however they meet.
func TestClient(t *testing.T) {
	program := client(t)
	for name, only := range map[string]string{"collect": "", "direct": "", "late": "", "collect-4.0": "PMIX_SERVER_URI4", "collect-3": "PMIX_SERVER_URI3", "direct-2.1": "PMIX_SERVER_URI21"} {
		t.Run(name, func(t *testing.T) {
			mode, _, _ := strings.Cut(name, "-")
			r := newRanks(t, 2)
			r.only = only
			out, errs, codes := r.run(t, program, mode)
			var want strings.Builder
			for id := range 4 {
				fmt.Fprintf(&want, "%d: 2 of 4 here, peers %d,%d, job 7.3, local rank %d, host n2\n%d: nothing is NOT-FOUND\n%d: lookup is NOT-SUPPORTED\n%d: done\n",
					id, id/2*2, id/2*2+1, id%2, id, id, id)
			}
			if diff := gocmp.Diff(want.String(), out); diff != "" || !slices.Equal(codes, []int{0, 0, 0, 0}) {
				t.Errorf("codes %v, errors:\n%s\n(-want +got):\n%s", codes, errs, diff)
			}
			aborts, printed := r.ends()
			if printed != strings.Repeat("said by log\n", 4) {
				t.Errorf("logged: %s", printed)
			}
			if aborts != nil {
				t.Errorf("the step is ended: %v", aborts)
			}
		})
	}
}

// TestClientEnds: one that asks for the end, or goes without good-bye, ends the
// step.
func TestClientEnds(t *testing.T) {
	program := client(t)
	for mode, want := range map[string]string{
		"abort": "1 called MPI_Abort with code 7: as asked",
		"die":   "1 has ended before MPI_Finalize",
	} {
		t.Run(mode, func(t *testing.T) {
			r := newRanks(t, 2)
			_, _, codes := r.run(t, program, mode)
			aborts, _ := r.ends()
			if diff := gocmp.Diff(want, aborts[0]); diff != "" {
				t.Errorf("codes %v (-want +got):\n%s", codes, diff)
			}
		})
	}
}
