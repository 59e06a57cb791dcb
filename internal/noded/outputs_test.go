package noded

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/noded/config"
	"gbatch/internal/transfer/s3test"
)

// stored is what the S3 server and the storage have of some names.
func (d *dataSite) stored(names ...string) map[string]string {
	got := map[string]string{}
	for _, n := range names {
		if b, err := os.ReadFile(filepath.Join(d.top, n)); err == nil {
			got[n] = string(b)
		} else if text, ok := d.s3.Get("lab/" + n); ok {
			got[n] = text
		}
	}
	return got
}

// TestOutputs: what fits is saved before the end is told, from the container's
// own files, from mounts and from inputs, and nothing else.
func TestOutputs(t *testing.T) {
	d := newDataSite(t, nil)
	d.start()
	shared := filepath.Join(d.top, "shared")
	if err := errors.Join(os.Mkdir(shared, 0o777), os.Chmod(shared, 0o777)); err != nil {
		t.Fatal(err)
	}
	d.s3.Put("lab/in/model", "before ")
	id := rankID(7)
	e, _ := d.run(id, d.dataOrder(id, `mkdir -p /results/a/b; cd /results; echo 1 >x.pt; echo 2 >a/b/y.pt; echo no >a/z.txt
ln -s /etc/passwd link.pt; mkfifo pipe.pt; ln -s /results /abs; echo shared >/shared/s; echo after >>/in/model; : >empty.pt; exit 0`, job.Gbatch{
		Inputs: []job.Input{{URI: "s3://lab/in/", Path: "/in"}},
		Outputs: []job.Output{
			{Path: "/results", URI: "s3://lab/out/{job}/", Pattern: "*.pt"},
			{Path: "/abs/a/z.txt", URI: "s3://lab/one.txt"},
			{Path: "/abs/a", URI: "file:///project/saved/{rank}/"},
			{Path: "/shared", URI: "s3://lab/shared/", When: job.WhenAlways},
			{Path: "/in/model", URI: "file:///project/model.new"},
			{Path: "/results", URI: "s3://lab/never/", When: job.WhenFailure},
		}}, func(o *api.RunOrder) {
		o.Spec.Request.Docker.Storage = []job.Storage{{HostPath: "/project/shared", ContainerPath: "/shared"}}
	}))
	if e.Code != 0 || e.Reason != "" {
		t.Errorf("exit %+v", e)
	}
	want := map[string]string{"out/7/x.pt": "1\n", "out/7/a/b/y.pt": "2\n", "out/7/empty.pt": "", "one.txt": "no\n", "saved/0/z.txt": "no\n", "saved/0/b/y.pt": "2\n",
		"shared/s": "shared\n", "model.new": "before after\n"}
	got := d.stored("out/7/x.pt", "out/7/a/b/y.pt", "out/7/empty.pt", "out/7/a/z.txt", "out/7/link.pt", "one.txt", "saved/0/z.txt", "saved/0/b/y.pt", "shared/s", "model.new", "never/x.pt")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("saved (-want +got):\n%s", diff)
	}
	d.holdsNothing()
	d.leavesNothing()
}

// TestOutputsEnd: how a rank is said to have ended when not all went well.
func TestOutputsEnd(t *testing.T) {
	d := newDataSite(t, nil)
	d.start()
	if err := os.Symlink("/etc", filepath.Join(d.top, "etc")); err != nil {
		t.Fatal(err)
	}
	write := "mkdir /r; echo 1 >/r/x; exit "
	out := func(path, uri, when string) []job.Output { return []job.Output{{Path: path, URI: uri, When: when}} }
	wrong := map[string]string{"AWS_ACCESS_KEY_ID": s3test.AccessKey, "AWS_SECRET_ACCESS_KEY": "wrong"}
	const failed = "the program succeeded (exit code 0), but not all of its outputs were saved: "
	tests := map[string]struct {
		line    string
		outputs []job.Output
		values  map[string]string
		want    node.Exit
		saved   string
	}{
		"failure saved":   {write + "3", out("/r", "s3://lab/1/", job.WhenFailure), nil, node.Exit{Code: 3, Reason: job.ExitCode, Message: "exit code 3"}, "1/x"},
		"not on failure":  {write + "3", out("/r", "s3://lab/2/", ""), wrong, node.Exit{Code: 3, Reason: job.ExitCode, Message: "exit code 3"}, ""},
		"keys":            {write + "0", out("/r", "s3://lab/3/", ""), wrong, node.Exit{Code: 125, Reason: job.OutputFailed, Message: failed + "output s3://lab/3/: the server does not take the keys (SignatureDoesNotMatch); check the job's secrets (not saved, of 1 files: x)"}, ""},
		"keys, failed":    {write + "3", out("/r", "s3://lab/4/", job.WhenAlways), wrong, node.Exit{Code: 3, Reason: job.ExitCode, Message: "exit code 3; not saved: output s3://lab/4/: the server does not take the keys (SignatureDoesNotMatch); check the job's secrets (not saved, of 1 files: x)"}, ""},
		"nothing":         {"true", out("/r", "s3://lab/5/", ""), nil, node.Exit{Code: 125, Reason: job.OutputFailed, Message: failed + "output s3://lab/5/: the program left no /r"}, ""},
		"nothing, always": {"true", out("/r", "s3://lab/6/", job.WhenAlways), nil, node.Exit{}, ""},
		"no match":        {write + "0", []job.Output{{Path: "/r", URI: "s3://lab/7/", Pattern: "*.pt"}}, nil, node.Exit{Code: 125, Reason: job.OutputFailed, Message: failed + "output s3://lab/7/: the program left no file that fits *.pt in /r"}, ""},
		"link out":        {"ln -s ../../../../../../etc /r", out("/r", "s3://lab/8/", ""), nil, node.Exit{}, "8/hosts"}, // of the container
		"no storage":      {write + "0", out("/r", "file:///etc/x/", ""), nil, node.Exit{Code: 125, Reason: job.OutputFailed, Message: failed + `output file:///etc/x/: storage "/etc/x" is not offered by this node; its storage is: /project, tmpfs`}, ""},
		"link in storage": {write + "0", out("/r", "file:///project/etc/x/", ""), nil, node.Exit{Code: 125, Reason: job.OutputFailed, Message: failed + `output file:///project/etc/x/: storage "/project/etc/x" leads out of /project through a symbolic link`}, ""},
	}
	n := 0
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			n++
			id := rankID(n)
			o := d.dataOrder(id, tc.line, job.Gbatch{Outputs: tc.outputs})
			if tc.values != nil {
				d.setSecrets(id, 1, tc.values)
			}
			e, _ := d.run(id, o)
			if diff := cmp.Diff(&tc.want, e, ignoreFigures); diff != "" {
				t.Errorf("exit (-want +got):\n%s", diff)
			}
			if _, ok := d.s3.Get("lab/" + tc.saved); tc.saved != "" && !ok {
				t.Error("not saved")
			}
		})
	}
	if got := d.stored("8/hosts", "8/passwd"); len(got) != 1 || !strings.Contains(got["8/hosts"], "\tjob-") {
		t.Errorf("a link led out of the container, to %v", got)
	}
	if _, err := os.Stat("/etc/x"); err == nil {
		t.Error("something was written outside of the storage")
	}
	d.holdsNothing()
	d.leavesNothing()
}

// TestKilledDuringOutput: the next daemon gets the keys again, goes on where
// the transfer was, and tells the end once all is there.
func TestKilledDuringOutput(t *testing.T) {
	d := newDataSite(t, func(c *config.Config) { c.Data.Parallel = 1 })
	letGo := d.slowly("PUT /lab/out/large", 2)
	defer letGo()
	p := d.spawn(0)
	id := rankID(1)
	d.want(id, d.dataOrder(id, "mkdir /r; yes 0123456789abcde | head -c 67108864 >/r/large; echo small >/r/small; exit 0", job.Gbatch{
		Outputs: []job.Output{{Path: "/r", URI: "s3://lab/out/"}}}, func(o *api.RunOrder) { o.Allocation.MemBytes = 512 << 20 }))
	until(t, "the third part to be on its way", func() bool { return len(d.s3.Requests("PUT /lab/out/large")) == 3 })
	d.await("the transfer to be shown", func() bool {
		return strings.HasPrefix(d.status[id].Progress, "output 1 of 1: ") && d.status[id].Phase == node.PhaseRunning
	})
	p.kill()
	letGo()
	d.s3.Hook(nil)
	p = d.spawn(1)
	if e := d.exit(id); e.Code != 0 || e.Reason != "" {
		t.Errorf("exit %+v", e)
	}
	if n := len(d.s3.Requests("PUT /lab/out/large")); n != 2 {
		t.Errorf("the second daemon sent %d parts, want 2: %v", n, d.s3.Requests(""))
	}
	got, _ := d.s3.Get("lab/out/large")
	if want := strings.Repeat("0123456789abcde\n", 4<<20); got != want {
		t.Errorf("%d bytes came, want %d", len(got), len(want))
	}
	d.empty()
	d.leavesNothing()
	p.term()
}

// TestKilledAroundOutputs: whenever the daemon dies, the outputs are there and
// the end is told as it was.
func TestKilledAroundOutputs(t *testing.T) {
	for i, point := range []string{"exited", "cleaned", "saved", "concluded", "undone", "told"} {
		t.Run(point, func(t *testing.T) {
			d := newDataSite(t, nil)
			d.killAt = point
			p := d.spawn(0)
			id := rankID(i + 1)
			d.want(id, d.dataOrder(id, "echo 1 >/x; exit 0", job.Gbatch{Outputs: []job.Output{{Path: "/x", URI: "s3://lab/x"}, {Path: "/y", URI: "s3://lab/y"}}}))
			p.died()
			d.killAt = ""
			p = d.spawn(1)
			if e := d.exit(id); e.Reason != job.OutputFailed || !strings.HasSuffix(e.Message, "output s3://lab/y: the program left no /y") {
				t.Errorf("exit %+v", e)
			}
			if diff := cmp.Diff(map[string]string{"x": "1\n"}, d.stored("x")); diff != "" {
				t.Errorf("saved (-want +got):\n%s", diff)
			}
			d.empty()
			d.leavesNothing()
			p.term()
		})
	}
}

// TestCancelDuringOutput: saving ends with the stop's grace.
func TestCancelDuringOutput(t *testing.T) {
	d := newDataSite(t, nil)
	d.start()
	defer d.slowly("PUT /lab/x", 0)()
	id := rankID(1)
	d.want(id, d.dataOrder(id, "echo 1 >/x", job.Gbatch{Outputs: []job.Output{{Path: "/x", URI: "s3://lab/x"}}}))
	d.await("the transfer to be under way", func() bool { return strings.HasPrefix(d.status[id].Progress, "output 1 of 1") })
	d.stop(id, api.Stop{Signal: "TERM", GraceMS: 300, Reason: job.ByUser, Text: "cancelled by alice"})
	e := d.exit(id)
	if e.Reason != job.ByUser || !strings.Contains(e.Message, "cancelled by alice; the program had succeeded (exit code 0)") {
		t.Errorf("exit %+v", e)
	}
	d.empty()
	d.leavesNothing()
}

// TestProgress: what a program says of its progress is shown, never falls, and
// may decide how it ended.
func TestProgress(t *testing.T) {
	d := newDataSite(t, nil)
	d.start()
	say := func(n int, name string) string {
		return fmt.Sprintf(`echo '{"percentComplete":%d,"name":"%s","metadata":{}}' >/p.new; mv /p.new /p; `, n, name)
	}
	tests := map[string]struct {
		line    string
		require bool
		done    *node.Done
		want    node.Exit
	}{
		"all":            {say(100, "end"), true, &node.Done{Percent: 100, Name: "end"}, node.Exit{}},
		"early":          {say(42, ""), true, &node.Done{Percent: 42}, node.Exit{Code: 125, Reason: job.Progress, Message: "exit code 0 at 42 percent of its progress"}},
		"early, allowed": {say(42, ""), false, &node.Done{Percent: 42}, node.Exit{Message: "finished; warning: exit code 0 at 42 percent of its progress"}},
		"never":          {"true", true, nil, node.Exit{Code: 125, Reason: job.Progress, Message: "exit code 0, but the program never wrote its progress to /p"}},
		"never, allowed": {"true", false, nil, node.Exit{}},
		"failed":         {say(42, "") + "exit 3", true, &node.Done{Percent: 42}, node.Exit{Code: 3, Reason: job.ExitCode, Message: "exit code 3"}},
		"link":           {"ln -s /../../../../../../../etc/passwd /p", false, nil, node.Exit{}},
		"pipe":           {"mkfifo /p; sleep 4", false, nil, node.Exit{}},
		"large":          {"yes | head -c 100000 >/p", false, nil, node.Exit{}},
	}
	n := 0
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			n++
			id := rankID(n)
			e, _ := d.run(id, order(tc.line, func(o *api.RunOrder) {
				o.Spec.Gbatch = &job.Gbatch{ProgressFile: "/p", RequireProgress: tc.require}
			}))
			if diff := cmp.Diff(&tc.want, e, ignoreFigures); diff != "" {
				t.Errorf("exit (-want +got):\n%s", diff)
			}
			d.mu.Lock()
			defer d.mu.Unlock()
			if diff := cmp.Diff(tc.done, d.status[id].Done); diff != "" {
				t.Errorf("progress (-want +got):\n%s", diff)
			}
		})
	}
	id := rankID(100)
	d.want(id, order(say(60, "first")+"until [ -e /m/go ]; do sleep 0.05; done; "+say(30, "second")+"sleep 100", func(o *api.RunOrder) {
		o.Spec.Gbatch = &job.Gbatch{ProgressFile: "/p"}
		o.Spec.Request.Docker.Storage = []job.Storage{{HostPath: "/project", ContainerPath: "/m"}}
	}))
	shows := func(text string) func() bool { return func() bool { return d.status[id].Done.String() == text } }
	d.await("the progress to be shown", shows("60% (first)"))
	if err := os.WriteFile(filepath.Join(d.top, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	d.await("the progress not to fall", shows("60% (second)"))
	d.empty()
	d.leavesNothing()
}

// TestServerAway: an S3 server that answers 500 now and then costs tries, not the output.
func TestServerAway(t *testing.T) {
	d := newDataSite(t, nil)
	d.start()
	d.a.data.Client.Pause = time.Millisecond
	var n atomic.Int32
	d.s3.Hook(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPut && n.Add(1) <= 3 {
			w.WriteHeader(http.StatusInternalServerError)
			return true
		}
		return false
	})
	id := rankID(1)
	e, _ := d.run(id, d.dataOrder(id, "echo 1 >/x", job.Gbatch{Outputs: []job.Output{{Path: "/x", URI: "s3://lab/x"}}}))
	if e.Code != 0 || d.stored("x")["x"] != "1\n" {
		t.Errorf("exit %+v, stored %v", e, d.stored("x"))
	}
	d.holdsNothing()
	d.leavesNothing()
}
