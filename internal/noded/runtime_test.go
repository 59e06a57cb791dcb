package noded

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/internal/noded/config"
	"gbatch/oci/runtimes"
)

// TestRuntime: a job that asks for another runtime has what others have, over the
// daemon's death too, and one that this node lacks is none.
func TestRuntime(t *testing.T) {
	for _, kind := range runtimes.Kinds {
		t.Run(string(kind), func(t *testing.T) {
			path, err := exec.LookPath(string(kind))
			if err != nil {
				t.Skipf("SKIPPED, this machine has no %s", kind)
			}
			u := newUserSite(t)
			u.cfg.Runtimes = map[string]config.Runtime{"walled": {Path: path}, "absent": {Path: filepath.Join(t.TempDir(), "none")}}
			u.start()
			with := func(name string, change ...func(*api.RunOrder)) func(*api.RunOrder) {
				return func(o *api.RunOrder) {
					o.Spec.Gbatch = &job.Gbatch{Runtime: name}
					o.Allocation.MemBytes = 512 << 20
					for _, c := range change {
						c(o)
					}
				}
			}
			inv, _ := u.a.inventory()
			offered := inv.Runtimes
			if len(offered) != 1 || offered[0].Name != "walled" || offered[0].NoGPUs != kind.Sandboxed() {
				t.Errorf("offered: %+v", offered)
			}
			e, out := u.run(rankID(1), ordered("bin", "id -u; touch /data/x; cat /proc/version; exit 5", with("walled")))
			if e.Code != 5 || !strings.HasPrefix(out, "0\n") || u.uid("x") != 2 {
				t.Errorf("exit %+v, output %q", e, out)
			}
			if kind.Sandboxed() != strings.Contains(out, "4.19.0-gvisor") && kind.Sandboxed() != strings.Contains(out, "#1 SMP Sun Jan 10 15:06:54 PST 2016") {
				t.Errorf("the kernel is %q", out)
			}
			if e, _ = u.runNoLog(rankID(2), order("true", with("absent"))); e.Reason != job.Server || !strings.Contains(e.Message, "has no runtime absent") {
				t.Errorf("exit %+v", e)
			}
			if kind.Sandboxed() {
				e, _ = u.runNoLog(rankID(3), order("true", with("walled", func(o *api.RunOrder) { o.Spec.Request.Resources.GPUs = 1 })))
				if e.Reason != job.Server || !strings.Contains(e.Message, "can have no GPUs") {
					t.Errorf("exit %+v", e)
				}
			}

			// The next daemon takes it over.
			u.want(rankID(4), ordered("bin", "touch /data/begun; until [ -e /data/go ]; do sleep 0.1; done; exit 6", with("walled")))
			u.await("a job that runs", func() bool { _, err := os.Stat(filepath.Join(u.top, "begun")); return err == nil })
			u.halt()
			u.start()
			u.file("go", "", 2, 0o644)
			if e := u.exit(rankID(4)); e.Code != 6 || e.Reason != job.ExitCode {
				t.Errorf("taken over: %+v", e)
			}
			u.drop(rankID(4))
			u.holdsNothing()
		})
	}
}
