package e2e

import (
	"os/exec"
	"strings"
	"testing"

	"gbatch/internal/job"
)

// TestOtherRuntimes: jobs by another runtime than the usual one, of those that this
// machine has: what a user does with a job is the same, root in it is the user, a
// job goes on while its node's daemon is killed, and a hostile one harms nothing.
// gVisor's runsc is there after "make runsc", with build/runsc in PATH.
func TestOtherRuntimes(t *testing.T) {
	for _, name := range []string{"runc", "runsc"} {
		t.Run(name, func(t *testing.T) {
			path, err := exec.LookPath(name)
			if err != nil {
				t.Skipf("SKIPPED, this machine has no %s", name)
			}
			s := newSite(t, siteOptions{nodeConfig: "runtimes: {walled: {path: " + path + "}}\n"})
			storage := []any{map[string]any{"hostPath": "/project", "containerPath": "/project_ghent"}}
			walled := func(command []string) doc {
				return doc{command: command, storage: storage, gbatch: map[string]any{"runtime": "walled"}}
			}
			through := s.submit(walled(sh("trap 'exit 9' TERM; echo begun; while [ ! -e /project_ghent/go ]; do sleep 0.1; done; cat /project_ghent/go; exit 4")))
			eventually(t, "it has begun", func() bool { return s.run("glog", through).out == "begun\n" })
			s.waitRunning(through) // its log may be there first
			if out := s.must("gexec", through, "--", "sh", "-c", "id -u; cat /proc/1/comm; exit 0"); !strings.HasPrefix(out, "0\n") {
				t.Errorf("a command beside it: %q", out)
			}
			s.nodes[0].kill()
			s.nodes[0].start()
			s.waitNodes("up", 1)
			s.must("gexec", through, "--", "sh", "-c", "echo went on >/project_ghent/go")
			if d := s.wait(through); d.ExitCode == nil || *d.ExitCode != 4 || len(d.Attempts) != 1 {
				t.Errorf("over the daemon's death: %s, %+v", d.State, d.ExitCode)
			}
			if out := s.must("glog", through); !strings.HasSuffix(out, "went on\n") {
				t.Errorf("its log: %q", out)
			}
			hostile := s.submit(walled(sh(`for f in /proc/sysrq-trigger /proc/sys/kernel/core_pattern /sys/kernel/uevent_helper; do (echo 1 >$f) 2>/dev/null && echo "wrote $f"; done
				mount --bind /project_ghent /mnt 2>/dev/null && echo mounted; mknod /project_ghent/d b 8 0 2>/dev/null && head -c1 /project_ghent/d 2>/dev/null && echo "read a disk"
				test -e /run/gbatch/gctld.sock && echo "found the controller"; kill -9 -1; exit 0`)))
			ends := s.wait(hostile)
			if out := s.run("glog", hostile).out; ends.Class == job.Infra || strings.Contains(out, "mounted") || strings.Contains(out, "read a disk") || strings.Contains(out, "found") || name == "runc" && strings.Contains(out, "wrote") {
				t.Errorf("a hostile job: %s (%s), %q", ends.Reason, ends.ReasonText, out)
			}
			stopped := s.submit(walled(idle))
			s.waitRunning(stopped)
			s.must("gcancel", stopped)
			if d := s.wait(stopped); d.State != job.Cancelled {
				t.Errorf("a cancelled job: %s (%s)", d.State, d.ReasonText)
			}
			s.well(s.submit(walled(sh("true"))))
			if n := s.node(0); n.State != "up" {
				t.Errorf("the node is %s: %s", n.State, n.Reason)
			}
		})
	}
}
