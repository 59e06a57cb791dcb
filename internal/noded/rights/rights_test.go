package rights

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"gbatch/oci/userns"
)

const first = 0x20000000

var alice = Of(userns.Owner{UID: 1003, GID: 1003, Groups: []uint32{2001}, First: first})

// tree is a directory with files, by name and "UID:GID MODE".
func tree(t *testing.T, files ...string) *os.Root {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED, gives files away as root")
	}
	top := t.TempDir()
	for dir := top; dir != "/tmp" && dir != "/"; dir = filepath.Dir(dir) {
		_ = os.Chmod(dir, 0o755)
	}
	for _, f := range files {
		var name string
		var uid, gid int
		var mode uint32
		if _, err := fmt.Sscanf(f, "%s %d:%d %o", &name, &uid, &gid, &mode); err != nil {
			t.Fatal(err)
		}
		p := filepath.Join(top, name)
		var err error
		if strings.HasSuffix(name, "/") {
			err = os.Mkdir(p, 0o700)
		} else {
			err = os.WriteFile(p, []byte("x"), 0o600)
		}
		if err := errors.Join(err, os.Lchown(p, uid, gid), unix.Chmod(p, mode)); err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(top)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return root
}

// TestReach: what the user may, with the groups and the ids that belong to the
// user alone, and nothing else.
func TestReach(t *testing.T) {
	root := tree(t, "mine 1003:1003 0600", "eve 1004:1004 0600", "root 0:0 0600", "project 0:2001 0640", "group 0:1003 0640", "rootgroup 0:0 0660",
		"shut/ 1004:1004 0700", "shut/open 1003:1003 0666", "pass/ 1004:1004 0711",
		fmt.Sprintf("app/ %d:%d 0700", first+1000, first+1000), fmt.Sprintf("app/d/ %d:%d 0700", first+1000, first+1000), fmt.Sprintf("app/d/x %d:2001 0600", first+1000),
		"app/d/eve 1004:1004 0600", fmt.Sprintf("other %d:%d 0600", first+userns.RangeSize, first+userns.RangeSize))
	for name, want := range map[string]bool{
		"mine": true, "eve": false, "root": false, "project": true, "group": true, "rootgroup": false, "shut/open": false, "pass": false,
		"app/d/x": true, "app/d": true, "app/d/eve": false, "other": false, "app/d/none": false,
	} {
		t.Run(strings.ReplaceAll(name, "/", "-"), func(t *testing.T) {
			err := alice.Reach(root, name, func() error {
				f, err := root.Open(name)
				if err == nil {
					f.Close()
				}
				return err
			})
			if (err == nil) != want || !want && !errors.Is(err, fs.ErrPermission) && name != "app/d/none" {
				t.Errorf("%v", err)
			}
			if err := Daemon().Do(func() error { _, err := root.Lstat(name); return err }); err != nil && name != "app/d/none" {
				t.Errorf("the daemon afterwards: %v", err)
			}
		})
	}
	// What is neither set nor known is no user, and not the daemon.
	if err := (Rights{}).Do(func() error { _, err := root.Open("mine"); return err }); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("without any rights: %v", err)
	}
}

// TestMade: what is made is the user's, and none of the other ways of root work.
func TestMade(t *testing.T) {
	root := tree(t, "mine/ 1003:1003 0700", "project/ 0:2001 02770", "eve 1004:1004 0644")
	if err := alice.Do(func() error { return errors.Join(root.Mkdir("mine/d", 0o700), root.Mkdir("project/d", 0o770)) }); err != nil {
		t.Fatal(err)
	}
	for name, gid := range map[string]uint32{"mine/d": 1003, "project/d": 2001} {
		st, err := root.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if s := st.Sys().(*syscall.Stat_t); s.Uid != 1003 || s.Gid != gid {
			t.Errorf("%s belongs to %d:%d", name, s.Uid, s.Gid)
		}
	}
	for what, do := range map[string]func() error{
		"chown":  func() error { return root.Chown("mine/d", 1004, 1004) },
		"chmod":  func() error { return root.Chmod("eve", 0o666) },
		"remove": func() error { return root.Remove("eve") },
		"device": func() error {
			return unix.Mknod(filepath.Join(root.Name(), "mine/dev"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3)))
		},
		"mount": func() error { return unix.Mount("none", filepath.Join(root.Name(), "mine"), "tmpfs", 0, "") },
	} {
		if err := alice.Do(do); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestThreads: no other thread has a user's rights, and none that had comes back.
func TestThreads(t *testing.T) {
	tree(t)
	mine := func() (uid string) {
		text, _ := os.ReadFile("/proc/thread-self/status")
		for line := range strings.Lines(string(text)) {
			if rest, ok := strings.CutPrefix(line, "Uid:"); ok {
				uid = strings.Join(strings.Fields(rest), " ")
			}
		}
		return uid
	}
	for range 50 {
		err := alice.Do(func() error {
			if got := mine(); got != "0 0 0 1003" {
				return errors.New("inside " + got)
			}
			inner := make(chan string)
			go func() { inner <- mine() }()
			if got := <-inner; got != "0 0 0 0" {
				return errors.New("a goroutine has " + got)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := mine(); got != "0 0 0 0" {
			t.Fatal("afterwards " + got)
		}
	}
	first, err := os.ReadFile("/proc/self/status")
	if err != nil || !strings.Contains(string(first), "Uid:\t0\t0\t0\t0") {
		t.Errorf("the first thread is somebody else, %v", err)
	}
}

func TestOfProcess(t *testing.T) {
	tree(t)
	r, err := OfProcess(os.Getpid())
	if err != nil || r.id.uid != 0 || r.daemon || r.first != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := OfProcess(-1); err == nil {
		t.Error("there is such a process")
	}
}

// TestRace: a link that changes between a file of the user's and one of another
// while it is opened never gives the other one.
func TestRace(t *testing.T) {
	root := tree(t, "mine 1003:1003 0600", "eve 1004:1004 0600")
	if err := root.WriteFile("eve", []byte("e"), 0o600); err != nil {
		t.Fatal(err)
	}
	stop, done := make(chan struct{}), make(chan struct{})
	go func() { // ends with stop; awaited below
		defer close(done)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				_ = root.Symlink([]string{"mine", "eve"}[i%2], "new")
				_ = root.Rename("new", "link")
			}
		}
	}()
	read := 0
	for range 1000 {
		err := alice.Reach(root, "link", func() error {
			b, err := root.ReadFile("link")
			if err == nil {
				if read++; string(b) != "x" {
					t.Errorf("read %q", b)
				}
			}
			return err
		})
		if err != nil && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
	close(stop)
	<-done
	if read == 0 {
		t.Error("nothing was read")
	}
}
