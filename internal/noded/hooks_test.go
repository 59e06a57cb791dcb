package noded

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/noded/config"
)

// hooked is a site whose node has a prolog and an epilog, which write what they do
// into a journal.
type hooked struct {
	*site
	dir     string
	witness string // where jobs write
}

func newHooked(t *testing.T, prolog, epilog string, change func(*config.Config)) *hooked {
	t.Helper()
	needContainers(t)
	h := &hooked{dir: t.TempDir(), witness: shared(t)}
	write := func(name, text string) []config.Program {
		if text == "" {
			return nil
		}
		path := filepath.Join(h.dir, name)
		text = "#!/bin/sh\nsay() { echo \"$*\" >> " + h.dir + "/journal; }\nsay begin " + name + "\n" + text + "\nsay end " + name + "\n"
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		return []config.Program{{Path: path}}
	}
	h.site = newSite(t, func(c *config.Config) {
		c.Prolog, c.Epilog = write("prolog", prolog), write("epilog", epilog)
		c.Storage = []config.StorageRoot{{Name: "/witness", Path: h.witness}}
		if change != nil {
			change(c)
		}
	})
	return h
}

// did is the journal.
func (h *hooked) did() []string {
	text, err := os.ReadFile(filepath.Join(h.dir, "journal"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		h.t.Error(err)
	}
	return strings.Fields(strings.ReplaceAll(strings.TrimSpace(string(text)), " ", "-"))
}

func (h *hooked) awaitDid(what string) {
	h.t.Helper()
	until(h.t, what+" in the journal", func() bool { return slices.Contains(h.did(), what) })
}

func (h *hooked) drainedFor() (list []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, f := range h.faults {
		list = append(list, h.plain(f.Text))
	}
	return list
}

// plain is a text without the test's directory, by either name.
func (h *hooked) plain(text string) string {
	return strings.NewReplacer(h.dir, "DIR", "/witness/", "DIR/").Replace(text)
}

// noHookLeft looks for what prolog and epilog must not leave.
func (h *hooked) noHookLeft() {
	h.t.Helper()
	until(h.t, "end of all records", func() bool {
		list, _ := filepath.Glob(filepath.Join(h.cfg.StateDir, "prologs", "*"))
		return len(list) == 0
	})
	h.leavesNothing()
}

// Prolog and epilog run as root on the machine, around the job, and know whose it is.
func TestPrologAndEpilog(t *testing.T) {
	const save = `(id -u; pwd; env | sort) > %s/%s.env; [ "$SLURM_SCRIPT_CONTEXT" = prolog_slurmd ] && sleep 1000 &`
	h := newHooked(t, "", "", nil)
	h.cfg.GPU.Simulate = "h100:4"
	for name, list := range map[string]*[]config.Program{"prolog": &h.cfg.Prolog, "epilog": &h.cfg.Epilog} {
		path := filepath.Join(h.dir, name)
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+fmt.Sprintf(save, h.dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		*list = []config.Program{{Path: path}}
	}
	h.cfg.SetDefaults()
	h.start()
	gpus := h.offered().GPUs
	id := job.RankID{Job: 12, Task: 3, Attempt: 2}
	o := order("exit 7", withGPUs(gpus[1], gpus[3]), func(o *api.RunOrder) {
		o.Spec.Name = "a name"
		o.Spec.Request.Docker.Environment = map[string]string{"PATH": "/evil", "GBATCH_USER": "root", "MINE": "1"}
	})
	e, _ := h.run(id, o)
	if e.Code != 7 || e.Reason != job.ExitCode {
		t.Errorf("the job ended with %+v", e)
	}
	h.empty()
	h.noHookLeft()
	common := map[string]string{
		"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "USER": "root", "LOGNAME": "root", "SHELL": "/bin/sh", "PWD": "/",
		"GBATCH_JOB_ID": "12", "GBATCH_JOB_UUID": o.UUID, "GBATCH_TASK": "3", "GBATCH_ATTEMPT": "2", "GBATCH_RANK": "0", "GBATCH_RANKS": "1",
		"GBATCH_USER": "alice", "GBATCH_UID": "536870912", "GBATCH_GID": "536870912", "GBATCH_PROJECT": "proj", "GBATCH_NODE": h.cfg.Name, "GBATCH_NODES": h.cfg.Name, "GBATCH_CLUSTER": "1", "GBATCH_PARTITION": "",
		"GBATCH_CPUS": "1", "GBATCH_CORES": "", "GBATCH_MEMORY_MB": "256", "GBATCH_GPUS": gpus[1].UUID + "," + gpus[3].UUID, "GBATCH_SIMULATED_GPUS": "1",
		"GBATCH_RANK_DIR": filepath.Join(h.cfg.StateDir, "ranks", id.String()), "GBATCH_SCRATCH_DIR": h.a.disk.Scratch(id),
		"CUDA_VISIBLE_DEVICES": "1,3", "SLURM_JOB_GPUS": "1,3", "SLURM_GPUS_ON_NODE": "2", "SLURM_CLUSTER_NAME": "gbatch", "SLURM_JOB_ID": "12", "SLURM_JOBID": "12",
		"SLURM_JOB_USER": "alice", "SLURM_JOB_UID": "536870912", "SLURM_JOB_GID": "536870912", "SLURM_JOB_ACCOUNT": "proj", "SLURM_JOB_PARTITION": "1",
		"SLURM_JOB_NODELIST": h.cfg.Name, "SLURM_NODELIST": h.cfg.Name, "SLURM_NODEID": "0", "SLURM_CPUS_ON_NODE": "1", "SLURMD_NODENAME": h.cfg.Name, "SLURM_RESTART_COUNT": "1",
	}
	for name, more := range map[string]map[string]string{
		"prolog": {"SLURM_SCRIPT_CONTEXT": "prolog_slurmd"},
		"epilog": {"SLURM_SCRIPT_CONTEXT": "epilog_slurmd", "GBATCH_EXIT_CODE": "7", "GBATCH_EXIT_SIGNAL": "0", "GBATCH_REASON": "EXIT_CODE"},
	} {
		for k, v := range common {
			more[k] = v
		}
		text, err := os.ReadFile(filepath.Join(h.dir, name+".env"))
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		got := map[string]string{}
		for _, line := range lines[2:] {
			k, v, _ := strings.Cut(line, "=")
			if k != "_" && k != "OLDPWD" && k != "SHLVL" {
				got[k] = v
			}
		}
		if lines[0] != "0" || lines[1] != "/" {
			t.Errorf("%s ran as %s in %s", name, lines[0], lines[1])
		}
		if diff := cmp.Diff(more, got); diff != "" {
			t.Errorf("environment of the %s (-want +got):\n%s", name, diff)
		}
	}
	if list := h.drainedFor(); len(list) > 0 {
		t.Errorf("drained for %q", list)
	}
}

// What fails drains the node, and is no fault of the job's.
func TestPrologAndEpilogFail(t *testing.T) {
	tests := map[string]struct {
		prolog, epilog string
		timeout        time.Duration
		exit           node.Exit
		did, drained   []string
	}{
		"prolog fails": {prolog: "echo no scratch >&2; exit 3", epilog: "true",
			exit:    node.Exit{Code: 125, Reason: job.Prolog, Message: "prolog DIR/prolog failed before job 1: exit code 3: no scratch; the node takes no more jobs until an operator has looked at it"},
			did:     []string{"begin-prolog", "begin-epilog", "end-epilog"},
			drained: []string{"prolog DIR/prolog failed before job 1: exit code 3: no scratch"}},
		"prolog is late": {prolog: "echo waiting for it; sleep 1000 & sleep 1000", timeout: time.Second,
			exit:    node.Exit{Code: 125, Reason: job.Prolog, Message: "prolog DIR/prolog failed before job 1: not over after 1s, and ended: waiting for it; the node takes no more jobs until an operator has looked at it"},
			did:     []string{"begin-prolog"},
			drained: []string{"prolog DIR/prolog failed before job 1: not over after 1s, and ended: waiting for it"}},
		"epilog fails": {prolog: "true", epilog: "echo stale files; exit 1",
			exit:    node.Exit{Code: 1, Reason: job.ExitCode, Message: "exit code 1"},
			did:     []string{"begin-prolog", "end-prolog", "job", "begin-epilog"},
			drained: []string{"epilog DIR/epilog failed after job 1: exit code 1: stale files"}},
		"epilog is killed": {epilog: "kill -9 $$",
			exit:    node.Exit{Code: 1, Reason: job.ExitCode, Message: "exit code 1"},
			did:     []string{"job", "begin-epilog"},
			drained: []string{"epilog DIR/epilog failed after job 1: ended by signal SIGKILL"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			h := newHooked(t, tc.prolog, tc.epilog, nil)
			for _, list := range [][]config.Program{h.cfg.Prolog, h.cfg.Epilog} {
				for i := range list {
					if tc.timeout > 0 {
						list[i].Timeout = config.Duration(tc.timeout)
					}
				}
			}
			journal := filepath.Join(h.dir, "journal")
			if err := errors.Join(os.WriteFile(journal, nil, 0o666), os.Chmod(journal, 0o666)); err != nil {
				t.Fatal(err)
			}
			h.cfg.Storage[0].Path = h.dir
			h.start()
			h.want(rankID(1), order("echo job >> /w/journal; exit 1", func(o *api.RunOrder) {
				o.Spec.Request.Docker.Storage = []job.Storage{{HostPath: "/witness", ContainerPath: "/w"}}
			}))
			e := h.exit(rankID(1))
			if drained := h.drainedFor(); !cmp.Equal(drained, tc.drained) { // known when the end is
				t.Errorf("drained for (-want +got):\n%s", cmp.Diff(tc.drained, drained))
			}
			e.Message = h.plain(e.Message)
			if diff := cmp.Diff(&tc.exit, e, ignoreFigures); diff != "" {
				t.Errorf("exit (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.did, h.did()); diff != "" {
				t.Errorf("journal (-want +got):\n%s", diff)
			}
			if strings.HasPrefix(name, "prolog") && e.StartedMS != 0 {
				t.Error("the job ran")
			}
			until(t, "fault noted", func() bool { return len(h.a.faults.List()) == 0 })
			h.drop(rankID(1))
			h.holdsNothing()
			h.noHookLeft()
		})
	}
}

// What a rank had is given to nobody before its epilog has ended.
func TestNothingIsFreeBeforeTheEpilogEnded(t *testing.T) {
	h := newHooked(t, "", "while [ ! -e DIR/go ]; do sleep 0.05; done", nil)
	text, err := os.ReadFile(h.cfg.Epilog[0].Path)
	if err == nil {
		err = os.WriteFile(h.cfg.Epilog[0].Path, []byte(strings.ReplaceAll(string(text), "DIR", h.dir)), 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	h.start()
	h.want(rankID(1), order("true"))
	h.awaitDid("begin-epilog")
	until(t, "word of the epilog", func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.status[rankID(1)].Progress == "the site's epilog runs"
	})
	h.mu.Lock()
	s := h.status[rankID(1)]
	h.mu.Unlock()
	if s.Exit != nil { // its phase may be starting still: the program is over in no time
		t.Errorf("while the epilog runs: %+v", s)
	}
	if err := os.WriteFile(filepath.Join(h.dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if e := h.exit(rankID(1)); !e.OK() || !slices.Contains(h.did(), "end-epilog") {
		t.Errorf("%+v, %v", e, h.did())
	}
	h.empty()
	h.noHookLeft()
}

// A job that is cancelled while its prolog runs ends at once, and nobody is to blame.
func TestCancelledInProlog(t *testing.T) {
	h := newHooked(t, "sleep 1000", "true", nil)
	h.start()
	h.want(rankID(1), order("true"))
	h.awaitDid("begin-prolog")
	h.stop(rankID(1), api.Stop{Signal: "TERM", GraceMS: 1000, Reason: job.ByUser, Text: "cancelled"})
	if e := h.exit(rankID(1)); e.Reason != job.ByUser {
		t.Errorf("%+v", e)
	}
	if diff := cmp.Diff([]string{"begin-prolog", "begin-epilog", "end-epilog"}, h.did()); diff != "" {
		t.Errorf("journal (-want +got):\n%s", diff)
	}
	if list := h.drainedFor(); len(list) > 0 {
		t.Errorf("drained for %q", list)
	}
	h.empty()
	h.noHookLeft()
}

// The daemon is killed at each point of a rank's life. Its job runs once, its prolog
// and its epilog each to their end once, and again only what was under way.
func TestKilledAroundPrologAndEpilog(t *testing.T) {
	again := map[string]string{"prolog noted": "", "prolog passed": "prolog", "epilog noted": "", "epilog ended": "epilog"}
	for i, point := range []string{"before prolog", "prolog noted", "prolog passed", "before slot", "before container", "started", "exited", "epilog noted", "epilog ended", "epilog over", "undone", "told"} {
		t.Run(strings.ReplaceAll(point, " ", "-"), func(t *testing.T) {
			h := newHooked(t, "true", "true", nil)
			h.cfg.Storage[0].Path = h.witness
			n := i + 1
			id := rankID(n)
			h.killAt = point
			p := h.spawn(0)
			h.want(id, witnessOrder(50))
			p.died()
			h.killAt = ""
			p = h.spawn(1)
			if e := h.exit(id); e.Code != n {
				t.Errorf("it ended with %+v", e)
			}
			wrote, _ := os.ReadFile(filepath.Join(h.witness, fmt.Sprint(n)))
			if want := fmt.Sprintf("begin %d\nend %d\n", n, n); string(wrote) != want {
				t.Errorf("it wrote %q, want %q", wrote, want)
			}
			var want []string
			for _, name := range []string{"prolog", "epilog"} {
				want = append(want, "begin-"+name, "end-"+name)
				if again[point] == name {
					want = append(want, "begin-"+name, "end-"+name)
				}
			}
			if diff := cmp.Diff(want, h.did()); diff != "" {
				t.Errorf("journal (-want +got):\n%s", diff)
			}
			h.empty()
			h.noHookLeft()
			p.term()
			if t.Failed() {
				t.Log(p.text())
			}
		})
	}
}

// A prolog and an epilog that run when the daemon is killed end, and are run again.
func TestKilledInPrologAndEpilog(t *testing.T) {
	for _, name := range []string{"prolog", "epilog"} {
		t.Run(name, func(t *testing.T) {
			wait := map[string]string{"prolog": "true", "epilog": "true"}
			wait[name] = `[ $(grep -c "begin ` + name + `" "$(dirname "$0")/journal") -gt 1 ] || sleep 1000`
			h := newHooked(t, wait["prolog"], wait["epilog"], nil)
			p := h.spawn(0)
			h.want(rankID(1), order("exit 4"))
			h.awaitDid("begin-" + name)
			p.kill()
			p = h.spawn(1)
			if e := h.exit(rankID(1)); e.Code != 4 {
				t.Errorf("it ended with %+v", e)
			}
			want := []string{"begin-prolog", "end-prolog", "begin-epilog", "end-epilog"}
			if name == "prolog" {
				want = slices.Insert(want, 0, "begin-prolog")
			} else {
				want = slices.Insert(want, 2, "begin-epilog")
			}
			if diff := cmp.Diff(want, h.did()); diff != "" {
				t.Errorf("journal (-want +got):\n%s", diff)
			}
			h.empty()
			h.noHookLeft()
			p.term()
		})
	}
}

// A rank that is not wanted any more when the daemon is back has its epilog too,
// and who comes next waits for that.
func TestEpilogOfWhoNeverCame(t *testing.T) {
	h := newHooked(t, "true", "sleep 1", nil)
	h.killAt = "prolog passed"
	p := h.spawn(0)
	h.want(rankID(1), order("true"))
	p.died()
	h.drop(rankID(1))
	h.killAt = ""
	p = h.spawn(1)
	h.want(rankID(2), order("exit 2"))
	if e := h.exit(rankID(2)); e.Code != 2 {
		t.Errorf("%+v", e)
	}
	want := []string{"begin-prolog", "end-prolog", "begin-epilog", "end-epilog", "begin-prolog", "end-prolog", "begin-epilog", "end-epilog"}
	if diff := cmp.Diff(want, h.did()); diff != "" {
		t.Errorf("journal (-want +got):\n%s", diff)
	}
	h.empty()
	h.noHookLeft()
	p.term()
}
