package noded

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"gbatch/internal/api"
	"gbatch/internal/job"
)

// withFiles is an order that mounts storage and brings files.
func withFiles(line string, files []job.File, entries ...job.Storage) *api.RunOrder {
	o := storageOrder(line, entries...)
	o.Spec.Gbatch = &job.Gbatch{Files: files}
	return o
}

// TestNested: what is mounted below a directory of the project's, and files below it, are
// there in every kind of directory, and in the user's storage is nothing of theirs but the
// places for them.
func TestNested(t *testing.T) {
	s, top := withStorage(t)
	dir := filepath.Join(top, "project", "proj")
	o := withFiles(`cat /data/conf/app.yml /data/sub/deep/key /vol/f /mem/f && echo own > /data/sub/own && echo v > /data/vol/x && echo m > /data/mem/x &&
		! echo bad 2>/dev/null > /data/conf/app.yml && ! echo bad 2>/dev/null > /data/ro/x && /data/run.sh && df -k /data/mem | awk 'NR==2{print $2}' && cat /data/theirs`,
		[]job.File{{Path: "/data/conf/app.yml", Text: "conf\n"}, {Path: "/data/sub/deep/key", Text: "key\n"}, {Path: "/vol/f", Text: "vol\n"},
			{Path: "/mem/f", Text: "mem\n"}, {Path: "/data/run.sh", Text: "#!/bin/sh\necho ran\n", Program: true}, {Path: "/data/theirs", Text: "ours\n"}},
		job.Storage{HostPath: "/project/a", ContainerPath: "/data"},
		job.Storage{HostPath: "/project/b", ContainerPath: "/data/sub"},
		job.Storage{HostPath: "/project/c", ContainerPath: "/data/ro", ReadOnly: true},
		job.Storage{HostPath: "scratch", Volume: "v", ContainerPath: "/data/vol"},
		job.Storage{HostPath: "tmpfs", ContainerPath: "/data/mem", SizeGB: 1},
		job.Storage{HostPath: "scratch", Volume: "w", ContainerPath: "/vol"},
		job.Storage{HostPath: "tmpfs", ContainerPath: "/mem", OfMemory: true})
	if e, out := s.run(rankID(1), storageOrder("echo theirs > /p/theirs", job.Storage{HostPath: "/project/a", ContainerPath: "/p"})); e.Code != 0 {
		t.Fatalf("%s\n%+v", out, e)
	}
	e, out := s.run(rankID(2), o)
	if diff := cmp.Diff("conf\nkey\nvol\nmem\nran\n1048576\nours\n", out); diff != "" || e.Code != 0 {
		t.Fatalf("output (-want +got):\n%s\n%+v", diff, e)
	}
	want := map[string]string{"a/theirs": "theirs\n", "a/conf/app.yml": "", "a/run.sh": "", "b/deep/key": "", "b/own": "own\n",
		"a/sub": "dir", "a/ro": "dir", "a/vol": "dir", "a/mem": "dir"}
	got := map[string]string{}
	for name := range want {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if errors.Is(err, unix.EISDIR) {
			if in, _ := os.ReadDir(filepath.Join(dir, name)); len(in) == 0 {
				text, err = []byte("dir"), nil
			}
		}
		if got[name] = string(text); err != nil {
			got[name] = err.Error()
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("in the storage (-want +got):\n%s", diff)
	}
	s.holdsNothing()
}

// TestNestedEscapes: no link in the storage leads to a place outside of it, nothing is made
// where the user may not, or where the job may only read, and the sentence says where.
func TestNestedEscapes(t *testing.T) {
	s, top := withStorage(t)
	dir, outside := filepath.Join(top, "project", "proj"), filepath.Join(top, "outside")
	if e, _ := s.run(rankID(1), storageOrder("ln -s "+outside+" /p/abs; ln -s ../../outside /p/up; ln -s nothing /p/dead; ln -s loop /p/loop; echo x > /p/file; ln -s inside /p/fine; mkdir /p/inside /p/empty",
		job.Storage{HostPath: "/project", ContainerPath: "/p"})); e.Code != 0 {
		t.Fatalf("%+v", e)
	}
	if err := errors.Join(os.Mkdir(outside, 0o777), os.Chmod(outside, 0o777), os.Mkdir(dir+"/roots", 0o755), os.WriteFile(dir+"/roots/there", nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		at       string
		readOnly bool
		want     string
	}{
		"absolute":       {"abs/f", false, `cannot mount on "abs/f" in storage "/project": a symbolic link leads out of the storage`},
		"relative":       {"up/f", false, `cannot mount on "up/f" in storage "/project": a symbolic link leads out of the storage`},
		"a link":         {"abs", false, `cannot mount on "abs" in storage "/project": a symbolic link leads out of the storage`},
		"loop":           {"loop", false, `cannot mount on "loop" in storage "/project": a symbolic link leads out of the storage`},
		"dead":           {"dead/f", false, `cannot mount on "dead/f" in storage "/project": a symbolic link points to nothing`},
		"below a file":   {"file/f", false, `cannot mount on "file/f" in storage "/project": a file is where a directory is to be, or the other way round`},
		"on a directory": {"empty", false, `cannot mount on "empty" in storage "/project": a file is where a directory is to be, or the other way round`},
		"not theirs":     {"roots/f", false, `cannot mount on "roots/f" in storage "/project": user alice may not reach it or make it; make it first`},
		"read-only":      {"empty/f", true, `cannot mount on "empty/f" in storage "/project": it can only be read and has nothing there; make that first`},
		"there":          {"file", true, ""},
		"root's":         {"roots/there", false, ""},
		"inside":         {"fine/f", false, ""},
	}
	n := 2
	for name, tc := range tests {
		o := withFiles("cat /p/"+tc.at, []job.File{{Path: "/p/" + tc.at, Text: "ours"}}, job.Storage{HostPath: "/project", ContainerPath: "/p", ReadOnly: tc.readOnly})
		e, out := s.run(rankID(n), o)
		n++
		if e.Message != tc.want || tc.want == "" && out != "ours" || tc.want != "" && e.Reason != job.Mount {
			t.Errorf("%s: %q, %+v", name, out, e)
		}
	}
	if in, _ := os.ReadDir(outside); len(in) > 0 {
		t.Errorf("made outside of the storage: %v", in)
	}
	if mounts, _ := os.ReadFile("/proc/self/mountinfo"); strings.Contains(string(mounts), dir) {
		t.Error("a mount is left on the storage itself")
	}
	s.holdsNothing()
}
