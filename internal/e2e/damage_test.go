package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"gbatch/internal/api"
	"gbatch/internal/job"
)

// hurt is a site of one node, some of whose jobs something is done to.
type hurt struct{ *site }

// TestDamage does to a site what nobody expects, one thing after the other: each hurts the job or the file
// to which it was done, jobs beside it and after it are whole, and nothing has to be put right by hand but what says so.
func TestDamage(t *testing.T) {
	t.Parallel() // it mostly waits
	s := newSite(t, siteOptions{ctldConfig: quick, nodeConfig: "  - {name: /hangs, path: DIR/hangs}\n", made: func(s *site) {
		if err := os.Mkdir(s.dir+"/hangs", 0o755); err != nil {
			t.Fatal(err)
		}
	}})
	h := hurt{s}
	neighbour := h.victim()
	for _, c := range damages {
		if t.Failed() {
			return
		}
		t.Run(c.name, func(t *testing.T) {
			own := *s // its fatal errors end the subtest
			own.t = t
			h := hurt{&own}
			c.do(h)
			for _, d := range []*daemon{h.ctld, h.node()} {
				if !d.running() {
					t.Fatalf("%s has ended: %v\n%s", d.name, d.err, tail(d.log, 10))
				}
			}
			if d := h.wait(h.submit(doc{name: "next", command: []string{"true"}})); endOf(d) != finished {
				t.Errorf("the next job:\n%s\n%s", describe(d), h.run("ginfo").out)
			}
			if d := h.job(neighbour); d.State != job.Running {
				t.Errorf("the job beside it:\n%s", describe(d))
			}
		})
	}
	h.goesOn(neighbour)
}

var damages = []struct {
	name string
	do   func(h hurt)
}{
	{"processes are moved out of their control group", func(h hurt) {
		id := h.victim()
		h.moveAway(id)
		h.must("gcancel", id)
		if d := h.wait(id); d.State != job.Cancelled {
			h.t.Errorf("it ends with:\n%s", describe(d))
		}
	}},
	{"control groups are removed", func(h hurt) {
		id := h.victim()
		h.moveAway(id)
		_ = exec.Command("find", "/sys/fs/cgroup/", "-depth", "-type", "d", "-name", filepath.Base(h.rank(id)), "-exec", "rmdir", "{}", "+").Run()
		h.goesOn(id)
	}},
	{"a network interface is removed", func(h hurt) {
		id := h.victim()
		var said []byte
		if !poll(patience, func() bool { // each of its processes may end before it is entered
			return slices.ContainsFunc(h.pids(id), func(pid int) (done bool) {
				var err error
				said, err = exec.Command("nsenter", fmt.Sprintf("--net=/proc/%d/ns/net", pid), "ip", "link", "del", "eth0").CombinedOutput()
				return err == nil
			})
		}) {
			h.t.Fatalf("the interface is not removed: %s", said)
		}
		h.away(func() {})
		h.goesOn(id)
	}},
	{"the directory of a log is a file", func(h hurt) {
		id := h.victim()
		h.away(func() { h.inPlace(filepath.Join(h.rank(id), "box", "log"), false) })
		h.goesOn(id)
	}},
	{"a shim's socket is removed", func(h hurt) {
		ended, goesOn := h.victim(), h.victim()
		h.ok(os.Remove(filepath.Join(h.rank(ended), "box", "sock")), os.Remove(filepath.Join(h.rank(goesOn), "box", "sock")))
		h.must("gcancel", ended)
		h.wait(ended)
		h.goesOn(goesOn)
	}},
	{"a job's directory on its node is removed", func(h hurt) {
		id, over := h.victim(), h.victim()
		h.remove(h.rank(id))
		h.letGo(id)
		h.nodesFault(id)
		name := filepath.Base(h.rank(over))
		h.away(func() { h.remove(h.rank(over)) })
		h.nodesFault(over)
		if !poll(patience, func() bool { return len(inGroup(name)) == 0 }) {
			h.t.Errorf("processes of a job that nobody knows live: %v", inGroup(name))
		}
	}},
	{"files of a job on its node are directories", func(h hurt) {
		record, shim, spec, exit := h.victim(), h.victim(), h.victim(), h.victim()
		h.away(func() {
			for id, file := range map[string]string{record: "rank.json", shim: "box/shim.json", spec: "box/config.json", exit: "box/exit.json"} {
				h.inPlace(filepath.Join(h.rank(id), file), true)
			}
		})
		h.nodesFault(record)
		h.goesOn(shim)
		h.goesOn(spec)
		h.letGo(exit)
		if d := h.wait(exit); endOf(d) != (ended{job.Failed, job.ExitCode, 9}) && d.Reason != string(job.NodeFail) {
			h.t.Errorf("it ends with:\n%s", describe(d))
		}
	}},
	{"files of the node are directories", func(h hurt) {
		id := h.victim()
		h.away(func() {
			for _, file := range []string{"health.json", "reboot.json", "records", "gpus.json", "instance", ".tried"} {
				h.inPlace(filepath.Join(h.node().stateDir, file), true)
			}
			h.inPlace("/run/gbatch/contact/"+h.nodeName(0), true)
			h.inPlace(filepath.Join(h.node().stateDir, "programs"), false)
			h.inPlace(filepath.Join(h.node().stateDir, "prologs"), false)
		})
		h.goesOn(id)
		h.waitNodes("up", 1)
	}},
	{"what only an operator can judge cannot be read", func(h hurt) {
		id := h.victim()
		for file, says := range map[string]string{"faults.json": "cannot be read any more", "ids.json": "had which ids here is not known any more"} {
			h.away(func() { h.inPlace(filepath.Join(h.node().stateDir, file), true) })
			eventually(h.t, "an operator is told", func() bool { return strings.Contains(h.run("ginfo", h.nodeName(0)).out, says) })
			h.must("gadm", "resume", h.nodeName(0))
		}
		h.goesOn(id)
	}},
	{"the programs for containers are removed", func(h hurt) {
		h.ok(os.RemoveAll(filepath.Join(h.node().stateDir, "programs")))
		script := filepath.Join(h.dir, "script.sh")
		h.ok(os.WriteFile(script, []byte("#!/bin/sh\nsrun echo hello\n"), 0o755))
		if r := h.run("gsubmit", "--image", image, "--follow", script); r.code != 0 || r.out != "hello\n" {
			h.t.Error(r)
		}
	}},
	{"records of images are garbled", func(h hurt) {
		records, err := filepath.Glob(filepath.Join(h.node().stateDir, "images", "*", "*.json"))
		h.ok(err)
		for _, path := range records {
			h.ok(os.WriteFile(path, []byte("garbled"), 0o600))
		}
		h.goesOn(h.victim())
		h.away(func() {})
	}},
	{"the controller's socket is removed", func(h hurt) {
		h.ok(os.Remove(h.socket()))
		eventually(h.t, "the controller is reached", func() bool { return h.run("gqueue").code == 0 })
	}},
	{"the controller's directories are files", func(h hurt) {
		id := h.victim()
		h.ctld.kill()
		for _, dir := range []string{"curves", "logs", "trees"} {
			h.inPlace(filepath.Join(h.dir, "ctld", dir), false)
		}
		h.ctld.start()
		h.goesOn(id)
	}},
	{"the controller's configuration is a directory", func(h hurt) {
		text, err := os.ReadFile(h.ctld.config)
		h.ok(err)
		h.inPlace(h.ctld.config, true)
		h.ok(h.ctld.cmd.Process.Signal(syscall.SIGHUP))
		h.goesOn(h.victim())
		h.ok(os.RemoveAll(h.ctld.config), os.WriteFile(h.ctld.config, text, 0o644))
	}},
	{"a backup is cut off", func(h hurt) {
		file, config := filepath.Join(h.dir, "backup"), filepath.Join(h.dir, "other.yaml")
		h.must("gctld", "backup", file, "--config", h.ctld.config)
		text, err := os.ReadFile(file)
		h.ok(err, os.WriteFile(config, fmt.Appendf(nil, "dir: %s/other\nsocket: %s/other.sock\n", h.dir, h.dir), 0o644))
		for _, n := range []int{0, 1, 100, len(text) / 2, len(text) - 1} {
			h.ok(os.WriteFile(file, text[:n], 0o600))
			r := h.run("gctld", "restore", file, "--config", config)
			if left, _ := os.ReadDir(h.dir + "/other"); r.code == 0 || len(left) > 0 {
				h.t.Errorf("%d of %d bytes: %v, %v", n, len(text), r, left)
			}
		}
	}},
	{"a storage hangs", func(h hurt) {
		fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
		if err != nil {
			h.t.Skip("NOT TESTED: there is no FUSE here: ", err)
		}
		h.ok(unix.Mount("hangs", h.dir+"/hangs", "fuse", 0, fmt.Sprintf("fd=%d,rootmode=40755,user_id=0,group_id=0", fd)))
		id := h.submit(doc{name: "victim", command: []string{"true"}, storage: []any{"/hangs"}})
		h.waitState(id, "its node has it", func(s job.State) bool { return s != job.Queued })
		h.goesOn(h.victim())
		h.away(func() {})
		h.goesOn(h.victim())
		h.ok(unix.Close(fd), unix.Unmount(h.dir+"/hangs", unix.MNT_DETACH)) // all that waits for it is told so
		h.away(func() {})                                                   // the node looks at its storage anew
		if d := h.wait(id); endOf(d) != finished {
			h.t.Errorf("the job whose storage hung:\n%s", describe(d))
		}
	}},
}

func (h hurt) ok(errs ...error) {
	h.t.Helper()
	if err := errors.Join(errs...); err != nil {
		h.t.Fatal(err)
	}
}

// victim is a job whose program runs until it is let go, and ends with 9 then.
func (h hurt) victim() string {
	h.t.Helper()
	id := h.submit(doc{name: "victim", storage: []any{"/project"},
		command: sh("touch /project/began-$GBATCH_JOB_NUMBER; until [ -e /project/go-$GBATCH_JOB_NUMBER ]; do sleep 0.1; done; exit 9")})
	eventually(h.t, "its program runs", func() bool { return exists(filepath.Join(h.project(), "began-"+id)) })
	return id
}

func (h hurt) letGo(id string) {
	h.t.Helper()
	h.ok(os.WriteFile(filepath.Join(h.project(), "go-"+id), nil, 0o644))
}

// goesOn has a job end as its program does.
func (h hurt) goesOn(id string) {
	h.t.Helper()
	h.letGo(id)
	if d := h.wait(id); endOf(d) != (ended{job.Failed, job.ExitCode, 9}) {
		h.t.Errorf("it did not go on:\n%s", describe(d))
	}
}

// nodesFault waits for a job's end, which is said to be its node's fault.
func (h hurt) nodesFault(id string) *api.JobDetail {
	h.t.Helper()
	d := h.wait(id)
	if d.State != job.Failed || d.Reason != string(job.NodeFail) {
		h.t.Errorf("it ends with:\n%s", describe(d))
	}
	return d
}

func (h hurt) node() *daemon { return h.nodes[0] }

// away does something while there is no node daemon.
func (h hurt) away(do func()) {
	h.t.Helper()
	h.node().kill()
	defer h.node().start()
	do()
}

// inPlace has a directory, or a file, in the place of what is there.
func (h hurt) inPlace(path string, directory bool) {
	h.t.Helper()
	h.ok(os.RemoveAll(path))
	if directory {
		h.ok(os.MkdirAll(path+"/something", 0o700))
		return
	}
	h.ok(os.WriteFile(path, []byte("something"), 0o600))
}

// rank is the node's directory of a job.
func (h hurt) rank(id string) string {
	h.t.Helper()
	list, err := filepath.Glob(filepath.Join(h.node().stateDir, "ranks", id+"_*"))
	if err != nil || len(list) != 1 {
		h.t.Fatalf("directories of job %s: %v %v", id, list, err)
	}
	return list[0]
}

func (h hurt) pids(id string) []int { return inGroup(filepath.Base(h.rank(id))) }

// inGroup are the processes in control groups whose path ends with a name.
func inGroup(name string) (pids []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/cgroup")
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil && bytes.Contains(b, []byte("/"+name+"\n")) {
			pid, _ := strconv.Atoi(strings.Split(f, "/")[2])
			pids = append(pids, pid)
		}
	}
	return pids
}

// moveAway moves a job's processes to the roots of all hierarchies.
func (h hurt) moveAway(id string) {
	h.t.Helper()
	roots, err := filepath.Glob("/sys/fs/cgroup/*/cgroup.procs")
	h.ok(err)
	eventually(h.t, "its group is empty", func() bool {
		list := h.pids(id)
		for _, pid := range list {
			for _, root := range append(roots, "/sys/fs/cgroup/cgroup.procs") {
				if exists(root) {
					_ = os.WriteFile(root, []byte(strconv.Itoa(pid)), 0)
				}
			}
		}
		return len(list) == 0
	})
}

// remove is what somebody does who wants room.
func (h hurt) remove(dir string) {
	_ = exec.Command("sh", "-c", `umount "$1"/mnt/*; rm -rf --one-file-system "$1"`, "sh", dir).Run()
}
