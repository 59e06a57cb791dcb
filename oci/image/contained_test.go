package image

import (
	"archive/tar"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"golang.org/x/sys/unix"

	"gbatch/oci/image/imagetest"
	"gbatch/oci/ref"
)

// only lets connections go to these registries, as a site's guard does.
func only(hosts ...string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		for _, h := range hosts {
			if h == addr {
				return (&net.Dialer{}).DialContext(ctx, network, addr)
			}
		}
		return nil, fmt.Errorf("%s: %w", addr, ErrForbidden)
	}
}

// victim is a service of the site that nobody outside may reach.
func victim(t *testing.T) (host string, reached func() bool) {
	t.Helper()
	var n int
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n++
		fmt.Fprint(w, `{"token":"x","secret":"inside"}`)
	}))
	t.Cleanup(srv.Close)
	return strings.TrimPrefix(srv.URL, "http://"), func() bool { return n > 0 }
}

// A registry's redirects and token realms lead where the site lets them, and
// so does the reference itself.
func TestPullsReachOnlyWhatTheyMay(t *testing.T) {
	inside, reached := victim(t)
	for name, fault := range map[string]func(http.ResponseWriter, *http.Request) bool{
		"redirect of a manifest": func(w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, "http://"+inside+"/v1/nodes", http.StatusTemporaryRedirect)
			return strings.Contains(r.URL.Path, "/manifests/")
		},
		"redirect of a layer": func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.Contains(r.URL.Path, "/blobs/") {
				return false
			}
			http.Redirect(w, r, "http://"+inside+"/latest/meta-data", http.StatusFound)
			return true
		},
		"token realm": func(w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="http://%s/token",service="x"`, strings.Replace(inside, "127.0.0.1", "localhost", 1)))
			w.WriteHeader(http.StatusUnauthorized)
			return true
		},
		"redirect of the first question": func(w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, "http://"+inside+"/", http.StatusMovedPermanently)
			return r.URL.Path == "/v2/"
		},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			f := newRegistry(t)
			r, _ := f.push(t, "a/b:1", small(t, "x"))
			f.setFault(func(w http.ResponseWriter, r *http.Request) bool {
				rec := httptest.NewRecorder()
				if !fault(rec, r) {
					return false
				}
				for k, v := range rec.Header() {
					w.Header()[k] = v
				}
				w.WriteHeader(rec.Code)
				return true
			})
			s := open(t, Config{Dial: only(f.host)})
			_, err := s.Pull(t.Context(), PullRequest{Ref: r, Credentials: login("alice")})
			if e := wantError(t, err, Denied, "which is inside this site"); e.Fault() != FaultUser {
				t.Errorf("fault of %s", e.Fault())
			}
			if reached() {
				t.Error("the service was reached")
			}
		})
	}
	_, err := open(t, Config{Dial: only()}).Pull(t.Context(), PullRequest{Ref: parse(t, inside+"/a/b:1")})
	wantError(t, err, Denied, "which is inside this site")
	if reached() {
		t.Error("the service was reached by its name")
	}
}

var ownMounts, _ = os.Readlink("/proc/self/ns/mnt")

// A worker is nobody on this machine, alone in its namespaces, and sees its
// own directory only.
func TestWorkersHaveNoRights(t *testing.T) {
	f := newRegistry(t)
	r, _ := f.push(t, "a/b:1", small(t, "x"))
	s := open(t, Config{})
	pull(t, s, r, nil)
	var pid int
	for p := range s.workers.all {
		pid = p.cmd.Process.Pid
	}
	proc := "/proc/" + strconv.Itoa(pid)
	status, err := os.ReadFile(proc + "/status")
	if err != nil {
		t.Fatal(err)
	}
	id := strconv.Itoa(idBase + ownID)
	for _, line := range []string{
		"Uid:\t" + strings.Join([]string{id, id, id, id}, "\t"), "Gid:\t" + strings.Join([]string{id, id, id, id}, "\t"),
		"Groups:\t \n", "CapEff:\t000000008000001b", "CapPrm:\t000000008000001b", "CapAmb:\t000000008000001b",
	} {
		if !strings.Contains(string(status), line) {
			t.Errorf("no %q in\n%s", line, status)
		}
	}
	for _, ns := range []string{"user", "mnt", "net", "pid", "ipc", "uts", "cgroup"} {
		theirs, err := os.Readlink(proc + "/ns/" + ns)
		if ours, _ := os.Readlink("/proc/self/ns/" + ns); err != nil || ours == theirs {
			t.Errorf("%s namespace: %s, ours %s, %v", ns, theirs, ours, err)
		}
	}
	if got := names(t, proc+"/root/"); len(got) != 1 || got[0] != "work" {
		t.Errorf("it sees %v", got)
	}
	if now, _ := os.Readlink("/proc/self/ns/mnt"); now != ownMounts {
		t.Errorf("we are in %s, and were in %s", now, ownMounts)
	}
	mounts, _ := os.ReadFile(proc + "/mounts")
	if n := strings.Count(string(mounts), "\n"); n != 2 {
		t.Errorf("its mounts:\n%s", mounts)
	}
	env, _ := os.ReadFile(proc + "/environ")
	if string(env) != workerEnv+"=1\x00" {
		t.Errorf("its environment: %q", env)
	}
}

// Layers have on disk the owners, modes and attributes that root would give
// them, though no root unpacks them.
func TestOwnersAreKept(t *testing.T) {
	f := newRegistry(t)
	entries := []entry{
		{h: tar.Header{Name: "bin/su", Mode: 0o4755}, body: "x"},
		{h: tar.Header{Name: "srv/f", Mode: 0o2640, Uid: 65534, Gid: 100}, body: "x"},
		{h: tar.Header{Name: "far", Mode: 0o600, Uid: 1 << 30, Gid: 1 << 20}, body: "x"},
		directory("home", 0o700, 1000),
		{h: tar.Header{Typeflag: tar.TypeSymlink, Name: "link", Linkname: "far", Uid: 7, Gid: 8}},
		{h: tar.Header{Typeflag: tar.TypeFifo, Name: "pipe", Mode: 0o600, Uid: 7, Gid: 8}},
		pax(file("cap", "x"), "SCHILY.xattr.security.capability", "\x01\x00\x00\x02\x00\x20\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"),
		pax(file("attr", "x"), "SCHILY.xattr.user.note", "hello"),
	}
	r, _ := f.push(t, "o:1", imageOf(t, entries))
	fs := pull(t, open(t, Config{}), r, nil).Layers[0]
	for name, want := range map[string]string{
		".": "0 0 755", "bin": "0 0 755", "bin/su": "0 0 4755", "srv": "0 0 755", "srv/f": "65534 100 2640", "far": "1073741824 1048576 600",
		"home": "1000 1000 700", "link": "7 8 777", "pipe": "7 8 600",
	} {
		var st unix.Stat_t
		if err := unix.Lstat(filepath.Join(fs, name), &st); err != nil {
			t.Error(err)
		}
		if got := fmt.Sprintf("%d %d %o", st.Uid, st.Gid, st.Mode&0o7777); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	for name, attr := range map[string]string{"cap": "security.capability", "attr": "user.note"} {
		if n, err := unix.Lgetxattr(filepath.Join(fs, name), attr, nil); err != nil || n == 0 {
			t.Errorf("%s has no attribute %s: %v", name, attr, err)
		}
	}
	_, err := open(t, Config{}).Pull(t.Context(), PullRequest{Ref: pushOf(t, f, []entry{{h: tar.Header{Name: "x", Uid: 1<<31 - 1}}})})
	wantError(t, err, Unsupported, "it has files of user 2147483647")
}

// The attacks of TestHostileLayers on the whole way: none is the node's fault,
// and none leaves anything behind.
func TestNoImageIsTheNodesFault(t *testing.T) {
	f := newRegistry(t)
	s := open(t, Config{MaxUnpackedBytes: 1 << 20})
	cases := map[string]hostileLayer{
		"large_attribute":   {entries: []entry{pax(file("f", "x"), "SCHILY.xattr.user.big", strings.Repeat("x", 60<<10))}, refused: "cannot be unpacked on this node"},
		"many_attributes":   {entries: []entry{manyAttributes(200)}, refused: "cannot be unpacked on this node"},
		"larger_than_it_is": {entries: []entry{file("big", strings.Repeat("x", 1<<20+1))}, refused: "unpacks to more than the 1 MiB"},
		"bomb":              {raw: make([]byte, 64<<20), refused: "unpacks to more than the 1 MiB"},
		"attribute_on_fifo": {entries: []entry{pax(entry{h: tar.Header{Typeflag: tar.TypeFifo, Name: "p"}}, "SCHILY.xattr.user.x", "y")}},
		"bad_capability":    {entries: []entry{pax(file("f", "x"), "SCHILY.xattr.security.capability", "no")}, refused: "invalid argument"},
		"bad_acl":           {entries: []entry{pax(file("f", "x"), "SCHILY.xattr.system.posix_acl_access", "no")}, refused: "invalid argument"},
		"negative_owner":    {entries: []entry{{h: tar.Header{Name: "f", Uid: -5}}}, refused: "it has files of user -5"},
	}
	for name, l := range hostileLayers() {
		if len(l.raw) > 1 && l.raw[0] == 0x1f {
			continue // the builder of images reads it too
		}
		if !strings.Contains(fmt.Sprint(l.entries), "SENTINEL") && !strings.Contains(fmt.Sprint(l.entries), "OUTSIDE") {
			cases[name] = l
		}
	}
	if len(cases) < 40 {
		t.Fatalf("%d images only", len(cases))
	}
	for name, l := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := s.Pull(t.Context(), PullRequest{Ref: pushOf(t, f, l.entries, l.raw)})
			if err == nil {
				if l.refused != "" {
					t.Errorf("was pulled; want it refused: %s", l.refused)
				}
				return
			}
			e := err.(*PullError)
			if e.Fault() == FaultNode || !strings.Contains(e.Detail, l.refused) || strings.Contains(e.Detail, workDir) || e.Temporary {
				t.Errorf("%s's fault: %s (%v), want %q", e.Fault(), e.Detail, e.cause, l.refused)
			}
		})
	}
	if left := names(t, s.layout.Tmp); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	pull(t, s, pushOf(t, f, []entry{file("good", "x")}), nil)
}

func manyAttributes(n int) entry {
	e := file("f", "x")
	e.h.PAXRecords = map[string]string{}
	for i := range n {
		e.h.PAXRecords[fmt.Sprintf("SCHILY.xattr.user.a%d", i)] = strings.Repeat("v", 200)
	}
	return e
}

var pushed int

// pushOf pushes an image of one layer, of entries or of raw bytes.
func pushOf(t *testing.T, f *fakeRegistry, entries []entry, raw ...[]byte) ref.Ref {
	t.Helper()
	body := tarOf(entries)
	if len(raw) > 0 && raw[0] != nil {
		body = raw[0]
	}
	l, err := imagetest.Layer(body, false)
	if err != nil {
		t.Fatal(err)
	}
	img, err := mutate.AppendLayers(empty.Image, l)
	if err == nil {
		img, err = imagetest.WithConfig(img, v1.Config{}, "")
	}
	if err != nil {
		t.Fatal(err)
	}
	pushed++
	r, _ := f.push(t, "h/"+strconv.Itoa(pushed)+":1", img)
	return r
}
