package transfer

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/reach"
)

// TestThereAndBack: small, large, empty and nested files come back as they went.
func TestThereAndBack(t *testing.T) {
	s, c := newServer(t), testClient()
	dir := files(t, map[string]int{"small": 10, "empty": 0, "a/b/large": 13<<20 + 7, "a/exact": 10 << 20})
	if err := put(t, c, s, dir, "s3://lab/run/"); err != nil {
		t.Fatal(err)
	}
	to := t.TempDir()
	got, err := get(t, c, s, to, "s3://lab/run/")
	if err != nil || got.Objects != 4 || got.Bytes != 23<<20+17 {
		t.Fatalf("fetched %+v, %v", got, err)
	}
	if diff := cmp.Diff(sums(t, dir), sums(t, filepath.Join(to, ContentDir))); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	one := t.TempDir()
	if got, err := get(t, c, s, one, "s3://lab/run/a/b/large"); err != nil || !got.Single {
		t.Fatalf("a single object: %+v, %v", got, err)
	}
	if a, b := sums(t, dir)["a/b/large"], sums(t, filepath.Join(one, ContentDir))[SingleName]; a != b {
		t.Errorf("a single object is %s, want %s", b, a)
	}
	// Again: nothing is read and nothing sent twice.
	s.Hook(nil)
	if _, err := get(t, c, s, to, "s3://lab/run/"); err != nil || s.count("GET") != 1 {
		t.Errorf("fetched again with %d requests, %v", s.count("GET"), err)
	}
	s.Hook(nil)
	if err := put(t, c, s, dir, "s3://lab/run/"); err != nil || s.count("PUT")+s.count("POST") != 0 {
		t.Errorf("sent again with %d requests, %v", s.count("PUT"), err)
	}
}

// TestRefusals: what the user can mend is said at once, in a sentence.
func TestRefusals(t *testing.T) {
	s, c := newServer(t), testClient()
	if err := put(t, c, s, files(t, map[string]int{"x": 1}), "s3://lab/"); err != nil {
		t.Fatal(err)
	}
	_, err := get(t, c, s, t.TempDir(), "s3://lab/nothing")
	wantKind(t, err, NotFound, "s3://lab/nothing: there is no such object")
	_, err = get(t, c, s, t.TempDir(), "s3://lab/nothing/")
	wantKind(t, err, NotFound, "s3://lab/nothing/: there is no object with this prefix")
	s.at.SecretKey = "WRONG"
	_, err = get(t, c, s, t.TempDir(), "s3://lab/x")
	wantKind(t, err, Denied, "s3://lab/x: access was denied")
	_, err = get(t, c, s, t.TempDir(), "s3://lab/")
	wantKind(t, err, Denied, "s3://lab/: the server does not take the keys (SignatureDoesNotMatch)")
	err = put(t, c, s, files(t, map[string]int{"x": 1, "y/z": 2}), "s3://lab/")
	wantKind(t, err, Denied, "(SignatureDoesNotMatch); check the job's secrets (not saved, of 2 files: x, y/z)")
	if n := s.count("PUT"); n > 3 {
		t.Errorf("it was tried %d times", n)
	}
}

// TestBrokenOff: a server that closes connections in the middle, answers 503
// now and then, and is cut off in between costs what was lost and no more.
func TestBrokenOff(t *testing.T) {
	s, c := newServer(t), testClient()
	c.Parallel = 1
	dir := files(t, map[string]int{"large": 21 << 20})
	var n atomic.Int32
	s.Hook(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == "PUT" && n.Add(1)%3 == 2 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		}
		return false
	})
	if err := put(t, c, s, dir, "s3://lab/"); err != nil {
		t.Fatal(err)
	}
	var sent atomic.Int64
	inner := func(w http.ResponseWriter, r *http.Request) {
		rec := httptest.NewRecorder()
		s.Handler.ServeHTTP(rec, r)
		half := int64(rec.Body.Len()) * 2 / 3
		sent.Add(half)
		brokenOff(w, rec, half)
	}
	var tries atomic.Int32
	var hook func(w http.ResponseWriter, r *http.Request) bool
	hook = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == "GET" && tries.Add(1) < 12 {
			inner(w, r)
		}
		return false
	}
	s.Hook(hook)
	to := t.TempDir()
	if _, err := get(t, c, s, to, "s3://lab/large"); err != nil {
		t.Fatal(err)
	}
	if a, b := sums(t, dir)["large"], sums(t, filepath.Join(to, ContentDir))[SingleName]; a != b {
		t.Errorf("it is %s, want %s", b, a)
	}
	if tries.Load() < 12 {
		t.Errorf("only %d tries", tries.Load())
	}
}

// TestStalled: a server that stops in the middle is not waited for for ever.
func TestStalled(t *testing.T) {
	t.Parallel() // it waits
	s, c := newServer(t), testClient()
	c.Stall = 2 * time.Second
	if err := put(t, testClient(), s, files(t, map[string]int{"x": 1000}), "s3://lab/"); err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	defer close(over)
	s.Hook(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != "GET" {
			return false
		}
		w.Header().Set("Content-Length", "1000")
		w.Header().Set("Etag", `"x"`)
		w.Header().Set("Last-Modified", time.Now().UTC().Format(http.TimeFormat))
		w.WriteHeader(206)
		w.(http.Flusher).Flush()
		select {
		case <-over:
		case <-r.Context().Done():
		}
		return true
	})
	_, err := get(t, c, s, t.TempDir(), "s3://lab/x")
	wantKind(t, err, Unreachable, "no data came for 2s; given up after 6 tries")
}

// web is a web server with one file, of which the test says how it behaves.
func web(t testing.TB, handler http.HandlerFunc) string {
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return s.URL
}

func TestHTTP(t *testing.T) {
	c := testClient()
	text := strings.Repeat("0123456789", 2<<20)
	serve := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"one"`)
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(text))
	}
	var changed atomic.Int32
	tests := map[string]struct {
		handler http.HandlerFunc
		sum     string
		kind    Kind
		err     string
	}{
		"ranges": {handler: serve},
		"no ranges": {handler: func(w http.ResponseWriter, r *http.Request) {
			r.Header.Del("Range")
			serve(w, r)
		}},
		"no length": {handler: func(w http.ResponseWriter, _ *http.Request) {
			for i := 0; i < len(text); i += 1 << 20 {
				fmt.Fprint(w, text[i:i+1<<20])
				w.(http.Flusher).Flush()
			}
		}},
		"checksum": {handler: serve, sum: strings.Repeat("0", 64), kind: Invalid, err: "and 0000000000"},
		"missing":  {handler: http.NotFound, kind: NotFound, err: "there is nothing there (404 Not Found)"},
		"denied":   {handler: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(403) }, kind: Denied, err: "(403 Forbidden)"},
		"broken":   {handler: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }, kind: Unreachable, err: "the server answered 500 Internal Server Error; given up after 6 tries"},
		"changed": {handler: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("ETag", fmt.Sprintf(`"%d"`, changed.Add(1)))
			http.ServeContent(w, r, "", time.Time{}, strings.NewReader(text))
		}, kind: Invalid, err: "was changed while it was being fetched"},
		"round and round": {handler: func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/", 302) }, kind: Invalid, err: "more than 5 times"},
		"to the machine itself": {handler: func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "http://localhost:1/", 302) },
			kind: Forbidden, err: "localhost is inside this site"},
		"to metadata": {handler: func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://169.254.169.254/latest/meta-data/", 302)
		}, kind: Forbidden, err: "169.254.169.254 is inside this site"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			uri := web(t, tc.handler)
			src, err := c.HTTP(uri)
			if err != nil {
				t.Fatal(err)
			}
			defer src.Close()
			dir := t.TempDir()
			_, err = c.Fetch(t.Context(), Fetch{URI: uri, Source: src, Dir: dir, SHA256: tc.sum})
			if tc.kind != "" {
				wantKind(t, err, tc.kind, tc.err)
				return
			}
			got, _ := os.ReadFile(filepath.Join(dir, ContentDir, SingleName))
			if err != nil || string(got) != text {
				t.Errorf("%d bytes, %v", len(got), err)
			}
		})
	}
	_, err := New(reach.Guard{}).HTTP("http://example.org/x")
	wantKind(t, err, Forbidden, "http:// is not allowed here")
	src, err := c.HTTP(web(t, func(w http.ResponseWriter, r *http.Request) { r.Header.Del("Range"); fmt.Fprint(w, text) }))
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Fetch(t.Context(), Fetch{Source: src, Dir: t.TempDir(), MaxBytes: 1 << 20})
	wantKind(t, err, TooLarge, "more than the 1 MiB")
}

// TestNames: no name of an object leads out of the directory.
func TestNames(t *testing.T) {
	for name, ok := range map[string]bool{
		"a": true, "a/b.c": true, "ä ö/x": true, ".hidden": true, "..x": true,
		"": false, "/a": false, "../a": false, "a/../../b": false, "a/../b": false, "a//b": false, "a/": false, ".": false, "..": false, "a/./b": false,
		"a\x00b": false, `a\b`: false, strings.Repeat("x", 256): false, strings.Repeat("x/", 600) + "x": false,
	} {
		if err := checkName(name); (err == nil) != ok {
			t.Errorf("%.20q: %v", name, err)
		}
	}
}

func TestMatch(t *testing.T) {
	for _, tc := range []struct {
		pattern, name string
		want          bool
	}{
		{"*.pt", "a.pt", true}, {"*.pt", "d/a.pt", true}, {"*.pt", "a.ptx", false},
		{"d/*.pt", "d/a.pt", true}, {"d/*.pt", "e/d/a.pt", false}, {"d/*.pt", "d/e/a.pt", false},
		{"**/*.json", "a.json", true}, {"**/*.json", "d/e/a.json", true}, {"d/**", "d/e/f", true}, {"d/**", "d", true}, {"d/**", "e/d", false},
		{"**", "a/b/c", true}, {"a/**/z", "a/z", true}, {"a/**/z", "a/b/c/z", true}, {"a/**/b/**/z", "a/b/c/z", true}, {"a/**/b/**/z", "a/c/z", false},
		{"[ab]?/x", "b1/x", true}, {"[ab]?/x", "c1/x", false}, {"*/*", "a", false},
	} {
		if got := match(tc.pattern, tc.name); got != tc.want {
			t.Errorf("%q fits %q: %t", tc.pattern, tc.name, got)
		}
	}
}

func FuzzMatch(f *testing.F) {
	f.Add("**/*.json", "a/b.json")
	f.Add(strings.Repeat("**/", 100)+"x", strings.Repeat("a/", 100)+"y")
	f.Fuzz(func(t *testing.T, pattern, name string) {
		match(pattern, name)
		if checkName(name) != nil {
			return // no file has it
		}
		if !match("**", name) || !strings.ContainsAny(name, `*?[\`) && !match(name, name) {
			t.Errorf("%q", name)
		}
	})
}

// TestCache: many who want the same fetch it once; it stays for the next; a
// change at the source is another entry; and what is held is not removed.
func TestCache(t *testing.T) {
	s, c := newServer(t), testClient()
	dir := files(t, map[string]int{"x": 3 << 20, "y": 2 << 20})
	if err := put(t, c, s, dir, "s3://lab/"); err != nil {
		t.Fatal(err)
	}
	s.Hook(nil)
	k, err := OpenCache(t.TempDir(), 4<<20, nil)
	if err != nil {
		t.Fatal(err)
	}
	fetch := func(scope, holder, uri string) string {
		src, err := c.S3Source(s.at, uri)
		if err != nil {
			t.Fatal(err)
		}
		defer src.Close()
		list, err := src.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		key, _, err := k.Get(t.Context(), c, Caller{Scope: scope, User: "ann", Holder: holder}, Fetch{URI: uri, Source: src, Objects: list})
		if err != nil {
			t.Error(err)
		}
		return key
	}
	var all sync.WaitGroup
	keys := make([]string, 5)
	for i := range keys {
		all.Go(func() { keys[i] = fetch("p", fmt.Sprint("r", i), "s3://lab/x") })
	}
	all.Wait()
	if n := s.count("GET"); n != 1 {
		t.Errorf("fetched %d times", n)
	}
	if other := fetch("q", "other", "s3://lab/x"); other == keys[0] {
		t.Error("another scope has the same entry")
	}
	y := fetch("p", "r0", "s3://lab/y")
	if _, err := k.Collect(time.Now()); err != nil {
		t.Fatal(err)
	}
	there := func(key string) bool {
		_, err := os.Stat(filepath.Join(k.Content(key), SingleName))
		return err == nil
	}
	if !there(keys[0]) || !there(y) {
		t.Error("an entry that is held was removed")
	}
	for i := range keys {
		k.Drop(fmt.Sprint("r", i))
	}
	k.Drop("other")
	freed, err := k.Collect(time.Now())
	if err != nil || freed != 6<<20 || !there(y) || there(keys[0]) {
		t.Errorf("freed %d, %v; the newest is there: %t", freed, err, there(y))
	}
	if err := put(t, c, s, files(t, map[string]int{"y": 2 << 20}), "s3://lab/"); err != nil {
		t.Fatal(err)
	}
	if fetch("p", "r9", "s3://lab/y") == y {
		t.Error("what has changed has the old entry")
	}
}

// TestDirs: files come from and go to directories of this machine, and no link
// leads out of them.
func TestDirs(t *testing.T) {
	c := testClient()
	from := files(t, map[string]int{"a/x": 7 << 20, "y": 1})
	for link, to := range map[string]string{"out": "/etc/passwd", "in": "y", "up": "../../etc"} {
		if err := os.Symlink(to, filepath.Join(from, link)); err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(from)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	to := t.TempDir()
	got, err := c.Fetch(t.Context(), Fetch{Source: DirSource(Dir{Root: root}, ""), Dir: to})
	if err != nil || got.Objects != 2 {
		t.Fatalf("fetched %+v %v", got, err)
	}
	if _, err := c.Fetch(t.Context(), Fetch{Source: DirSource(Dir{Root: root}, "in"), Dir: t.TempDir()}); err != nil {
		t.Errorf("a link within the directory: %v", err)
	}
	_, err = c.Fetch(t.Context(), Fetch{URI: "file:///p/out", Source: DirSource(Dir{Root: root}, "out"), Dir: t.TempDir()})
	wantKind(t, err, Invalid, `file "out" cannot be read: path escapes from parent`)
	_, err = c.Fetch(t.Context(), Fetch{URI: "file:///p/no", Source: DirSource(Dir{Root: root}, "no"), Dir: t.TempDir()})
	wantKind(t, err, NotFound, `file:///p/no: there is no file "no"`)

	sent := t.TempDir()
	target, err := os.OpenRoot(sent)
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	if err := os.Symlink("/etc", filepath.Join(sent, "a")); err != nil {
		t.Fatal(err)
	}
	s := Send{Sink: DirSink(Dir{Root: target}, ""), From: Dir{Root: root}, Names: []string{"a/x", "y"}, Journal: filepath.Join(t.TempDir(), "j")}
	err = c.Send(t.Context(), s)
	wantKind(t, err, Invalid, "path escapes from parent (not saved, of 2 files: a/x)")
	if err := os.Remove(filepath.Join(sent, "a")); err != nil {
		t.Fatal(err)
	}
	if err := c.Send(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	want := sums(t, filepath.Join(to, ContentDir))
	if diff := cmp.Diff(want, sums(t, sent)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}
