package noded

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/noded/config"
	"gbatch/internal/noded/rights"
	"gbatch/internal/noded/storage"
	"gbatch/oci/userns"
)

// withStorage is a site whose storage lies in a directory of the test.
func withStorage(t *testing.T) (*site, string) {
	top := t.TempDir()
	for _, d := range []string{"project", "fixed", "ssh"} {
		if err := os.Mkdir(filepath.Join(top, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	s := newSite(t, func(c *config.Config) {
		c.Storage = []config.StorageRoot{
			{Name: "/project", Path: top + "/project/{project}", Create: true},
			{Name: "/project_fixed", Path: top + "/fixed"},
		}
		c.SSHDir = top + "/ssh/{project}/{user}"
		c.TmpfsMax = 1 << 30
	})
	return s.start(), top
}

func storageOrder(line string, entries ...job.Storage) *api.RunOrder {
	return order(line, func(o *api.RunOrder) { o.Spec.Request.Docker.Storage = entries })
}

// TestStorage: what is made gets the project's group and setgid, what is
// written is there, and all kinds of mounts show up where they should.
func TestStorage(t *testing.T) {
	s, top := withStorage(t)
	e, out := s.run(rankID(1), storageOrder(
		`echo hi > /project/f && mkdir /deep/sub && cat /project/f && echo key > /root/.ssh/id && df -k /mem | awk 'NR==2{print $2}' && id -u`,
		job.Storage{HostPath: "/project", ContainerPath: "/project"},
		job.Storage{HostPath: "/project/a/b/", ContainerPath: "/deep"},
		job.Storage{HostPath: ".ssh", ContainerPath: "/root/.ssh"},
		job.Storage{HostPath: "tmpfs", ContainerPath: "/mem", SizeGB: 1},
	))
	if diff := cmp.Diff("hi\n1048576\n0\n", out); diff != "" || e.Code != 0 {
		t.Fatalf("output (-want +got):\n%s\n%+v", diff, e)
	}
	want := map[string]string{
		"project/proj":         "drwxrws--- 4242",
		"project/proj/a":       "drwxrws--- 4242",
		"project/proj/a/b":     "drwxrws--- 4242",
		"project/proj/a/b/sub": "drwxr-sr-x 4242",
		"project/proj/f":       "-rw-r--r-- 4242",
		"ssh/proj/alice":       "drwx------ 4242",
	}
	got := map[string]string{}
	for name := range want {
		got[name] = owner(t, filepath.Join(top, name))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("modes and groups (-want +got):\n%s", diff)
	}
	e, _ = s.run(rankID(2), storageOrder("echo x > /project/g", job.Storage{HostPath: "/project", ContainerPath: "/project", ReadOnly: true}))
	if e.Code == 0 {
		t.Error("a read-only mount was written to")
	}
	s.holdsNothing()
}

func owner(t *testing.T, path string) string {
	st, err := os.Stat(path)
	if err != nil {
		t.Error(err)
		return ""
	}
	mode := st.Mode()
	text := mode.Perm().String()
	if mode.IsDir() {
		text = "d" + text[1:]
	}
	if mode&os.ModeSetgid != 0 {
		b := []byte(text)
		b[6] = "sS"[map[bool]int{true: 0, false: 1}[b[6] == 'x']]
		text = string(b)
	}
	return fmt.Sprintf("%s %d", text, st.Sys().(*syscall.Stat_t).Gid)
}

// TestEscapes: no path and no link leads out of a root, and the sentence says
// which path it was.
func TestEscapes(t *testing.T) {
	s, top := withStorage(t)
	dir := filepath.Join(top, "project", "proj")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"abs": "/etc", "up": "../../../..", "loop": "loop", "dead": "nothing", "fine": "inside"} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "inside"), 0o755); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct{ hostPath, want string }{
		"dots":     {"/project/../../etc", `storage "/project/../../etc" must not contain ".."`},
		"absolute": {"/project/abs", `storage "/project/abs" leads out of /project through a symbolic link`},
		"below":    {"/project/abs/ssh", `storage "/project/abs/ssh" leads out of /project through a symbolic link`},
		"make":     {"/project/abs/new/dir", `storage "/project/abs/new/dir" leads out of /project through a symbolic link`},
		"relative": {"/project/up/etc", `storage "/project/up/etc" leads out of /project through a symbolic link`},
		"loop":     {"/project/loop/x", `storage "/project/loop/x" has too many symbolic links`},
		"dead":     {"/project/dead/x", `storage "/project/dead/x" does not exist on this node: a link in it points to nothing`},
		"unknown":  {"/home/alice", `storage "/home/alice" is not offered by this node; its storage is: .ssh, /project, /project_fixed, tmpfs`},
		"missing":  {"/project_fixed/x", `storage "/project_fixed/x" does not exist on this node; make it first or correct the path`},
		"inside":   {"/project/fine", ""},
	}
	st := storage.New(&s.cfg)
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			src, err := st.Open(job.Storage{HostPath: tc.hostPath}, storage.Tenant{User: "alice", Project: "proj", GID: 1})
			got := ""
			if err != nil {
				got = err.Error()
			} else {
				src.Close()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
	if made, _ := filepath.Glob("/etc/new"); len(made) > 0 {
		t.Error("a directory was made outside of the root")
	}
	e, _ := s.run(rankID(1), storageOrder("true", job.Storage{HostPath: "/project/abs", ContainerPath: "/p"}))
	want := &node.Exit{Code: 125, Reason: job.Mount, Message: tests["absolute"].want}
	if diff := cmp.Diff(want, e, ignoreFigures); diff != "" {
		t.Errorf("exit (-want +got):\n%s", diff)
	}
	e, _ = s.run(rankID(2), storageOrder("true", job.Storage{HostPath: "tmpfs", ContainerPath: "/m", SizeGB: 2}))
	if e.Reason != job.Mount || !strings.Contains(e.Message, "tmpfs mounts of 2.0 GiB") {
		t.Errorf("too large a tmpfs: %+v", e)
	}
	s.holdsNothing()
}

// TestHalfMadeStorage: the directory of a project that another rank, or a daemon that was killed, made and did not hand over is handed
// over; one that an administrator keeps for root is not.
func TestHalfMadeStorage(t *testing.T) {
	for _, tc := range []struct {
		name string
		mode os.FileMode
		want string
	}{
		{"under way", os.ModeSticky | 0o700, "drwxrws--- 4243"},
		{"kept for root", 0o700, "drwx------ 0"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			top := t.TempDir()
			at := filepath.Join(top, "proj")
			if err := errors.Join(os.Mkdir(at, 0o700), os.Chmod(at, tc.mode)); err != nil {
				t.Fatal(err)
			}
			_ = os.Chmod(filepath.Dir(top), 0o755)
			st := storage.New(&config.Config{Storage: []config.StorageRoot{{Name: "/project", Path: top + "/{project}", Create: true, Mode: 0o2770}}})
			src, err := st.Open(job.Storage{HostPath: "/project"}, storage.Tenant{User: "alice", Project: "proj", UID: 4242, OwnGID: 4243})
			if err != nil {
				t.Fatal(err)
			}
			src.Close()
			if got := owner(t, at); got != tc.want {
				t.Errorf("it is %s, want %s", got, tc.want)
			}
		})
	}
}

// TestStorageMadeAtOnce: ranks that begin at one moment all reach the project's directory, whichever makes it.
func TestStorageMadeAtOnce(t *testing.T) {
	top := t.TempDir()
	if err := os.Chmod(filepath.Dir(top), 0o755); err != nil {
		t.Fatal(err)
	}
	st := storage.New(&config.Config{Storage: []config.StorageRoot{{Name: "/project", Path: top + "/{project}", Create: true, Mode: 0o2770}}})
	alice := storage.Tenant{User: "alice", UID: 4242, OwnGID: 4243, Rights: rights.Of(userns.Owner{UID: 4242, GID: 4243})}
	for n := range 200 {
		alice.Project = fmt.Sprintf("p%d", n)
		var all errgroup.Group
		for range 4 {
			all.Go(func() error {
				src, err := st.Open(job.Storage{HostPath: "/project/data"}, alice)
				if err == nil {
					src.Close()
				}
				return err
			})
		}
		if err := all.Wait(); err != nil {
			t.Fatal(err)
		}
	}
}
