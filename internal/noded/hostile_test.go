package noded

import (
	"archive/tar"
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"

	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/internal/noded/config"
	"gbatch/oci/image/imagetest"
	"gbatch/oci/ref"
)

// bad is a job that does what it should not.
type bad struct {
	order  *api.RunOrder
	reason job.Reason
	code   int    // -1: any
	text   string // in the message
	output string // in the log; empty: not looked at
}

// limited gives a job that never ends a time limit.
func limited(ms, graceMS int64) func(*api.RunOrder) {
	return func(o *api.RunOrder) { o.LimitMS, o.GraceMS = ms, graceMS }
}

func mounting(list ...job.Storage) func(*api.RunOrder) {
	return func(o *api.RunOrder) { o.Spec.Request.Docker.Storage = list }
}

// TestHostileJobs: each ends in a defined state with a sentence that names the
// cause, the node stays well, and the next job runs on the same image.
func TestHostileJobs(t *testing.T) {
	witness := shared(t)
	s := newSite(t, func(c *config.Config) {
		c.PidsMax, c.Logs.Quota = 100, 256<<10
		c.Storage = []config.StorageRoot{{Name: "/witness", Path: witness}}
	}).start()
	busy := mounting(job.Storage{HostPath: "/witness", ContainerPath: "/w"})
	tests := []struct {
		name string
		bad
	}{
		{"forks without end", bad{order(`f() { f & f & sleep 1000; }; f & exec sleep 1000`, limited(1500, 200)), job.MaxRuntime, -1, "time limit of 1.5s", ""}},
		{"needs more processes", bad{order(`i=0; while [ $i -lt 200 ]; do sleep 100 & i=$((i+1)); done; echo unreached`), job.ExitCode, 2, "limit of 100 processes", "can't fork"}},
		{"fills its log", bad{order(`yes`, limited(4000, 200)), job.MaxRuntime, -1, "time limit", "y\n"}},
		{"fills its shm", bad{order(`dd if=/dev/zero of=/dev/shm/x bs=1M`, func(o *api.RunOrder) { o.Spec.Gbatch = &job.Gbatch{ShmSizeMB: 8} }), job.ExitCode, 1, "exit code 1", "No space left on device"}},
		{"fills its tmpfs", bad{order(`dd if=/dev/zero of=/t/x bs=1M; exit 5`, mounting(job.Storage{HostPath: job.TmpfsHostPath, ContainerPath: "/t", SizeGB: 1})), job.OOM, -1, "out of memory: killed at", ""}},
		{"eats memory", bad{order(`exec tail /dev/zero`), job.OOM, 137, "out of memory: killed at", ""}},
		{"ignores TERM", bad{order(stubborn, limited(4000, 200)), job.MaxRuntime, 137, "time limit", "ready"}},
		{"traps everything", bad{order(`for n in $(seq 64); do trap '' $n; done 2>/dev/null; while :; do sleep 1; done`, limited(1000, 200)), job.MaxRuntime, 137, "time limit", ""}},
		{"daemonizes", bad{order(`setsid sh -c 'trap "" TERM HUP; while :; do sleep 1; done' & exit 0`), job.None, 0, "", ""}},
		{"deletes its own root", bad{order(`rm -rf /* 2>/dev/null; exit 4`), job.ExitCode, 4, "exit code 4", ""}},
		{"writes to sys and proc", bad{order(`for f in /proc/sysrq-trigger /proc/sys/kernel/panic /proc/sys/kernel/core_pattern /proc/sys/vm/drop_caches /sys/kernel/mm/ksm/run /sys/fs/cgroup/memory/cgroup.procs; do
			(echo 1 > $f) 2>/dev/null && exit 9; done; exit 0`), job.None, 0, "", ""}},
		{"mounts", bad{order(`mount -t tmpfs none /mnt; mount --bind / /mnt; umount /proc`), job.ExitCode, 1, "exit code 1", "ermission denied"}},
		{"holds mounts busy", bad{order(`cd /w; (setsid sleep 1000 &); exec 3>/w/held; sleep 1000 & exit 0`, busy), job.None, 0, "", ""}},
		{"prints binary", bad{order(`head -c 100000 /dev/urandom; echo; echo end`), job.None, 0, "", "\nend\n"}},
		{"many variables", bad{order(`env | grep -c ^V_`, func(o *api.RunOrder) {
			o.Spec.Request.Docker.Environment = map[string]string{}
			for i := range 2000 {
				o.Spec.Request.Docker.Environment[fmt.Sprintf("V_%d", i)] = "x"
			}
		}), job.None, 0, "", "2000\n"}},
		{"huge argument", bad{order("", func(o *api.RunOrder) {
			o.Spec.Request.Docker.Command = job.Command{Argv: []string{"echo", strings.Repeat("x", 1<<20)}}
		}), job.BadSpec, 125, "argument 1 of the command is 1048576 bytes long", ""}},
		{"huge variable", bad{order("true", func(o *api.RunOrder) {
			o.Spec.Request.Docker.Environment = map[string]string{"BIG": strings.Repeat("x", 1<<20)}
		}), job.BadSpec, 125, "environment variable BIG is 1048580 bytes long", ""}},
		{"kills all it can", bad{order(`kill -9 -1; sh -c 'kill -SEGV $$; exit 0'; exit $?`), job.ExitCode, 139, "exit code 139", ""}},
	}
	for i, tc := range tests {
		t.Run(strings.ReplaceAll(tc.name, " ", "-"), func(t *testing.T) { s.endsAs(t, 2*i+1, tc.bad) })
	}
	s.holdsNothing()
	s.leavesNothing()
}

// endsAs runs a bad job and then a good one.
func (s *site) endsAs(t *testing.T, n int, b bad) {
	id := rankID(n)
	s.want(id, b.order)
	e := s.exit(id)
	out := ""
	if e.StartedMS > 0 {
		out = s.output(id)
	}
	s.drop(id)
	if e.Reason != b.reason || (b.code >= 0 && e.Code != b.code) || !strings.Contains(e.Message, b.text) {
		t.Errorf("it ended with %+v; want %s, code %d and %q", e, b.reason, b.code, b.text)
	}
	if !strings.Contains(out, b.output) {
		t.Errorf("its log has no %q: %.300q", b.output, out)
	}
	if len(out) > 1<<20 {
		t.Errorf("its log has %d bytes", len(out))
	}
	if e, out := s.run(rankID(n+1), order("echo next")); e.Code != 0 || out != "next\n" {
		t.Errorf("the next job: %+v, %q", e, out)
	}
	if list := s.unhealthy(); len(list) > 0 {
		t.Errorf("the node is unhealthy: %v", list)
	}
}

// TestHostileImages: the same for images.
func TestHostileImages(t *testing.T) {
	s := newSite(t, nil).start()
	run := func(image, line string, change ...func(*api.RunOrder)) *api.RunOrder {
		o := order(line, change...)
		o.Spec.Request.Docker.Image = image
		return o
	}
	noCommand := func(o *api.RunOrder) { o.Spec.Request.Docker.Command = job.Command{} }
	nobody := func(o *api.RunOrder) { o.Spec.Request.Docker.User = "1000" }
	busybox, err := imagetest.Busybox()
	if err != nil {
		t.Fatal(err)
	}
	deep := make([][]imagetest.File, 399) // and the base
	for i := range deep {
		deep[i] = []imagetest.File{{Name: fmt.Sprintf("layer%d", i), Body: []byte("x")}}
	}
	tests := []struct {
		name string
		bad
	}{
		{"no CMD", bad{run(s.push("nocmd", imagetest.Options{Layers: [][]imagetest.File{busybox}}), "", noCommand), job.BadSpec, -1, "no command", ""}},
		{"unknown USER", bad{run(s.push("nouser", imagetest.Options{Busybox: true, Config: v1.Config{User: "ghost", Env: []string{"PATH=/bin"}}}), "true"), job.BadSpec, -1, `no user "ghost"`, ""}},
		{"absolute symlinks", bad{run(s.push("links", imagetest.Options{Busybox: true, Layers: [][]imagetest.File{{
			{Name: "a", Link: "/bin"}, {Name: "etc/"}, {Name: "etc/hosts", Link: "/target/hosts"}, {Name: "target", Link: "/../../../tmp"}, {Name: "tmp/", Mode: 0o1777}}}}),
			`/a/ls /tmp/hosts; /a/grep -q localhost /etc/hosts && echo there`), job.None, 0, "", "ls: /tmp/hosts: No such file or directory\nthere\n"}},
		{"400 layers", bad{run(s.push("deep", imagetest.Options{Busybox: true, Layers: deep}), "cat /layer0 /layer398"), job.None, 0, "", "xx"}},
		{"setuid files", bad{run(s.push("setuid", imagetest.Options{Busybox: true, Layers: [][]imagetest.File{{
			{Name: "busybox", Mode: 0o4755, Body: busyboxBody(t, busybox)}, {Name: "id", Link: "busybox"}}}}),
			"/id -u; /busybox id -u; id -u", nobody), job.None, 0, "", "1000\n1000\n1000\n"}},
		{"device files", bad{run(s.pushImage("devices", withDevices(t)), "cat /disk; cat /kmsg; true"), job.None, 0, "", "can't open '/disk'"}},
	}
	for i, tc := range tests {
		t.Run(strings.ReplaceAll(tc.name, " ", "-"), func(t *testing.T) { s.endsAs(t, 2*i+1, tc.bad) })
	}
	s.holdsNothing()
	s.leavesNothing()
}

// TestStalledRegistry: a registry that stops in the middle of a layer costs the
// job its pull timeout, and not the node's other jobs.
func TestStalledRegistry(t *testing.T) {
	s := newSite(t, func(c *config.Config) { c.Images.PullTimeout = config.Duration(20e9) }).start()
	reg := newPrivateRegistry(t)
	stalled := make(chan struct{})
	defer close(stalled)
	reg.stalled.Store(&stalled)
	slow := imageOrder(reg.host+"/private/box:1", &api.Credential{Username: "alice", Password: secret})
	s.endsAs(t, 1, bad{slow, job.ImagePull, -1, "not pulled within 20s", ""})
	s.holdsNothing()
	s.leavesNothing()
}

// push puts an image into the test's registry.
func (s *site) push(name string, o imagetest.Options) string {
	s.t.Helper()
	img, err := imagetest.Build(o)
	if err != nil {
		s.t.Fatal(err)
	}
	return s.pushImage(name, img)
}

func (s *site) pushImage(name string, img v1.Image) string {
	s.t.Helper()
	full := strings.TrimSuffix(testReg.image, "/test/busybox:1") + "/hostile/" + name + ":1"
	r, _, err := ref.Parse(full)
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := imagetest.Push(r, img, nil); err != nil {
		s.t.Fatal(err)
	}
	return full
}

func busyboxBody(t *testing.T, files []imagetest.File) []byte {
	t.Helper()
	for _, f := range files {
		if filepath.Base(f.Name) == "busybox" {
			return f.Body
		}
	}
	t.Fatal("no busybox in the base layer")
	return nil
}

// withDevices is an image that brings a disk and the kernel's log along.
func withDevices(t *testing.T) v1.Image {
	t.Helper()
	img, err := imagetest.Build(imagetest.Options{Busybox: true})
	if err != nil {
		t.Fatal(err)
	}
	var raw bytes.Buffer
	w := tar.NewWriter(&raw)
	for _, h := range []tar.Header{
		{Typeflag: tar.TypeBlock, Name: "disk", Mode: 0o666, Devmajor: 259, Devminor: 0},
		{Typeflag: tar.TypeChar, Name: "kmsg", Mode: 0o666, Devmajor: 1, Devminor: 11},
	} {
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	layer, err := imagetest.Layer(raw.Bytes(), false)
	if err != nil {
		t.Fatal(err)
	}
	if img, err = mutate.AppendLayers(img, layer); err != nil {
		t.Fatal(err)
	}
	return img
}
