package noded

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/internal/noded/config"
)

// newDataOfUsers is a node whose storage has files of two users: bin, who is
// number 2 on every Debian and submits, and eve.
func newDataOfUsers(t *testing.T, change func(*config.Config)) *userSite {
	u := newUserSite(t)
	if change != nil {
		change(&u.cfg)
	}
	for _, d := range []struct {
		name string
		uid  int
		mode os.FileMode
	}{
		{"eve", 1003, 0o700}, {"eve/open", 1003, 0o777}, {"shut", 1003, 0o711}, {"read", 1003, 0o755}, {"sticky", 0, os.ModeSticky | 0o777},
		{"mine", 2, 0o700}, {"mixed", 2, 0o755}, {"deep", 2, 0o755}, {"deep/eve", 1003, 0o700},
	} {
		p := filepath.Join(u.top, d.name)
		if err := errors.Join(os.Mkdir(p, 0o700), os.Chown(p, d.uid, d.uid), os.Chmod(p, d.mode)); err != nil {
			t.Fatal(err)
		}
	}
	u.file("secret", "secret\n", 1003, 0o600)
	u.file("eve/file", "secret\n", 1003, 0o644)
	u.file("eve/open/file", "secret\n", 1003, 0o644)
	u.file("shut/file", "known\n", 1003, 0o644)
	u.file("sticky/eve", "before\n", 1003, 0o644)
	u.file("mine/file", "mine\n", 2, 0o600)
	u.file("mixed/mine", "mine\n", 2, 0o600)
	u.file("mixed/secret", "secret\n", 1003, 0o600)
	u.file("deep/mine", "mine\n", 2, 0o600)
	u.file("shown", `{"percentComplete":42,"name":"secret"}`, 1003, 0o600)
	for to, from := range map[string]string{"link": "secret", "linked": "eve/file", "up": "../secret"} {
		if err := os.Symlink(from, filepath.Join(u.top, to)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Link(filepath.Join(u.top, "secret"), filepath.Join(u.top, "hard")); err != nil {
		t.Fatal(err)
	}
	return u
}

// withData is a job of bin's with data.
func withData(user, script string, g job.Gbatch) *api.RunOrder {
	return ordered(user, script, func(o *api.RunOrder) { o.Spec.Gbatch = &g })
}

// TestInputsAsUser: of storage, an input is what the job's user may read.
func TestInputsAsUser(t *testing.T) {
	u := newDataOfUsers(t, nil)
	u.start()
	for i, tc := range []struct {
		uri, want string // of the output, else of the refusal
	}{
		{"mine/file", "mine\n"},
		{"mine/", "mine\n"},
		{"shut/file", "known\n"}, // a directory that may be passed and not listed
		{"shut/", "may not be read"},
		{"secret", "may not be read"},
		{"eve/file", "may not"},
		{"eve/", "may not"},
		{"eve/open/", "may not"},
		{"mixed/", `"secret" may not be read`},
		{"deep/", `"eve" may not be read`},
		{"link", "may not be read"},
		{"linked", "may not be read"},
		{"hard", "may not be read"},
		{"up", "path escapes"},
	} {
		for _, cache := range []bool{false, true} {
			id := rankID(2*i + 1)
			if cache {
				id = rankID(2*i + 2)
			}
			o := withData("bin", "cat $(find /in -type f)", job.Gbatch{Inputs: []job.Input{{URI: "file:///data/" + tc.uri, Path: "/in", Cache: cache}}})
			u.want(id, o)
			e := u.exit(id)
			if strings.HasSuffix(tc.want, "\n") {
				if out := u.output(id); out != tc.want || e.Code != 0 {
					t.Errorf("%s, cached %v: %q, %+v", tc.uri, cache, out, e)
				}
			} else if e.Reason != job.InputFailed || !strings.Contains(e.Message, tc.want) || strings.Contains(e.Message, u.top) {
				t.Errorf("%s, cached %v: %+v", tc.uri, cache, e)
			}
			u.drop(id)
		}
	}
	u.holdsNothing()
	u.leavesNothing()
}

// TestCachedInputsOfUsers: what one user's job has put into the cache, another
// gets only who may read it at its place, and who has the same URI for another
// file gets that.
func TestCachedInputsOfUsers(t *testing.T) {
	u := newUserSite(t)
	homes := filepath.Join(u.top, "homes")
	u.cfg.Storage = append(u.cfg.Storage, config.StorageRoot{Name: "/home", Path: homes + "/{user}", Mode: 0o700})
	for name, id := range map[string]int{"bin": 2, "daemon": 1} {
		if err := errors.Join(os.MkdirAll(filepath.Join(homes, name), 0o700), os.Chown(filepath.Join(homes, name), id, id)); err != nil {
			t.Fatal(err)
		}
		u.file("homes/"+name+"/x", name+strings.Repeat(".", 10-len(name))+"\n", id, 0o600)
	}
	if err := os.Chmod(homes, 0o755); err != nil {
		t.Fatal(err)
	}
	st, err := os.Stat(filepath.Join(homes, "daemon", "x"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(filepath.Join(homes, "bin", "x"), st.ModTime(), st.ModTime()); err != nil { // as anybody can do
		t.Fatal(err)
	}
	u.file("secret", "daemon's\n", 1, 0o600)
	u.start()
	in := func(uri string) job.Gbatch {
		return job.Gbatch{Inputs: []job.Input{{URI: uri, Path: "/in", Cache: true}}}
	}
	for i, tc := range []struct{ user, uri, want string }{
		{"daemon", "file:///data/secret", "daemon's\n"}, {"bin", "file:///data/secret", ""},
		{"daemon", "file:///home/x", "daemon....\n"}, {"bin", "file:///home/x", "bin.......\n"},
	} {
		id := rankID(i + 1)
		u.want(id, withData(tc.user, "cat /in", in(tc.uri)))
		e := u.exit(id)
		if tc.want == "" {
			if e.Reason != job.InputFailed {
				t.Errorf("%s reads %s: %+v", tc.user, tc.uri, e)
			}
		} else if out := u.output(id); out != tc.want || e.Code != 0 {
			t.Errorf("%s reads %s: %q, %+v", tc.user, tc.uri, out, e)
		}
		u.drop(id)
	}
	u.holdsNothing()
}

// TestOutputsAsUser: an output is read where the user may read and written
// where the user may write, as the user's.
func TestOutputsAsUser(t *testing.T) {
	u := newDataOfUsers(t, nil)
	u.start()
	const app = 1000 // another user of the image
	for i, tc := range []struct {
		name, as, script, path, uri string
		made                        string // what is there then; "": refused
		want                        string // in the message
	}{
		{name: "own", script: "echo 1 >/r", path: "/r", uri: "mine/new", made: "mine/new"},
		{name: "below", script: "mkdir /r; echo 1 >/r/x", path: "/r", uri: "mine/made/here/", made: "mine/made/here/x"},
		{name: "in eve's", script: "echo 1 >/r", path: "/r", uri: "read/x", want: "may not be written"},
		{name: "in a private one", script: "echo 1 >/r", path: "/r", uri: "eve/open/x", want: "may not"},
		{name: "make in eve's", script: "echo 1 >/r", path: "/r", uri: "read/new/x", want: "may not"},
		{name: "over eve's", script: "echo 1 >/r", path: "/r", uri: "sticky/eve", want: "may not be written"},
		{name: "of eve's", script: "true", path: "/data/secret", uri: "mine/stolen", want: "may not be read"},
		{name: "of a private one", script: "true", path: "/data/eve/open/file", uri: "mine/stolen", want: "may not be read"},
		{name: "by a link", script: "true", path: "/data/linked", uri: "mine/stolen", want: "may not be read"},
		{name: "by a hard link", script: "true", path: "/data/hard", uri: "mine/stolen", want: "may not be read"},
		{name: "with eve's among", script: "true", path: "/data/mixed", uri: "mine/all/", want: "may not be read"},
		{name: "of another user of the image", as: "1000", script: "umask 077; mkdir /data/app /data/app/d; echo 1 >/data/app/d/x", path: "/data/app", uri: "mine/app/", made: "mine/app/d/x"},
		{name: "into such a directory", as: "1000", script: "umask 022; mkdir /data/app2; echo 1 >/tmp/r", path: "/tmp/r", uri: "app2/x", made: "app2/x"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			id := rankID(i + 1)
			o := withData("bin", tc.script, job.Gbatch{Outputs: []job.Output{{Path: tc.path, URI: "file:///data/" + tc.uri}}})
			o.Spec.Request.Docker.User = tc.as
			e, out := u.run(id, o)
			if tc.made == "" {
				if e.Reason != job.OutputFailed || !strings.Contains(e.Message, tc.want) || strings.Contains(e.Message, u.top) {
					t.Errorf("exit %+v, output %q", e, out)
				}
				return
			}
			st, err := os.Stat(filepath.Join(u.top, tc.made))
			if e.Code != 0 || err != nil {
				t.Fatalf("exit %+v, output %q, %v", e, out, err)
			}
			if got := st.Sys().(*syscall.Stat_t).Uid; got != 2 && (tc.as == "" || got&0xffff != app) {
				t.Errorf("it belongs to %d", got)
			}
		})
	}
	if b, err := os.ReadFile(filepath.Join(u.top, "sticky/eve")); err != nil || string(b) != "before\n" {
		t.Errorf("eve's file has %q, %v", b, err)
	}
	if _, err := os.Stat(filepath.Join(u.top, "mine/stolen")); err == nil {
		t.Error("a file of eve's was saved")
	}
	u.holdsNothing()
	u.leavesNothing()
}

// TestMountsAsUser: no mount leads past a directory that the user may not pass,
// or by a link that a user put where the site's template leads.
func TestMountsAsUser(t *testing.T) {
	u := newDataOfUsers(t, nil)
	u.cfg.Storage = append(u.cfg.Storage, config.StorageRoot{Name: "/own", Path: u.top + "/sticky/{user}", Create: true, Mode: 0o2770})
	u.start()
	for i, tc := range []struct{ path, want string }{
		{"/data/mine", ""}, {"/data/shut/file", ""}, {"/data/eve", ""}, {"/data/eve/open", "may not"}, {"/data/eve/file", "may not"}, {"/own", "is a link"},
	} {
		if tc.path == "/own" {
			if err := errors.Join(os.Symlink("/etc", filepath.Join(u.top, "sticky/bin")), os.Lchown(filepath.Join(u.top, "sticky/bin"), 2, 2)); err != nil {
				t.Fatal(err)
			}
		}
		id := rankID(i + 1)
		u.want(id, ordered("bin", "true", func(o *api.RunOrder) {
			o.Spec.Request.Docker.Storage = []job.Storage{{HostPath: tc.path, ContainerPath: "/m"}}
		}))
		e := u.exit(id)
		if tc.want == "" && e.Code != 0 || tc.want != "" && (e.Reason != job.Mount || !strings.Contains(e.Message, tc.want)) {
			t.Errorf("%s: %+v", tc.path, e)
		}
		u.drop(id)
	}
	u.holdsNothing()
}

// TestProgressAsUser: of a file that the program may not read nothing is shown.
func TestProgressAsUser(t *testing.T) {
	u := newDataOfUsers(t, nil)
	u.start()
	id := rankID(1)
	u.want(id, withData("bin", "ln -s /data/shown /p; sleep 4", job.Gbatch{ProgressFile: "/p"}))
	u.exit(id)
	u.mu.Lock()
	done := u.status[id].Done
	u.mu.Unlock()
	u.drop(id)
	if done != nil {
		t.Errorf("a file of eve's is shown: %+v", done)
	}
	id = rankID(2)
	e, _ := u.run(id, withData("bin", "true", job.Gbatch{ProgressFile: "/data/shown", RequireProgress: true}))
	if !strings.Contains(e.Message, "never wrote its progress") {
		t.Errorf("exit %+v", e)
	}
	u.holdsNothing()
}

// TestSparseOutput: what is not there is not written, and what a rank saves is
// bounded by the node.
func TestSparseOutput(t *testing.T) {
	u := newDataOfUsers(t, func(c *config.Config) { c.Data.MaxOutput = 4 << 30 })
	u.start()
	make := "mkdir /r; dd if=/dev/zero of=/r/x bs=1 count=0 seek=3G 2>/dev/null; echo end >>/r/x; "
	out := []job.Output{{Path: "/r", URI: "file:///data/mine/"}}
	e, _ := u.run(rankID(1), withData("bin", make, job.Gbatch{Outputs: out}))
	st, err := os.Stat(filepath.Join(u.top, "mine/x"))
	if e.Code != 0 || err != nil {
		t.Fatalf("exit %+v, %v", e, err)
	}
	if n := st.Sys().(*syscall.Stat_t).Blocks * 512; st.Size() != 3<<30+4 || n > 1<<20 {
		t.Errorf("%d bytes were written of %d", n, st.Size())
	}
	e, _ = u.run(rankID(2), withData("bin", make+"dd if=/dev/zero of=/r/y bs=1 count=0 seek=2G 2>/dev/null; exit 0", job.Gbatch{Outputs: out}))
	if e.Reason != job.OutputFailed || !strings.Contains(e.Message, "data.maxOutput") || !strings.Contains(e.Message, "4.0 GiB") {
		t.Errorf("exit %+v", e)
	}
	u.holdsNothing()
}
