package keep

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gbatch/oci/logs"
)

// memory is an archive.
type memory struct {
	objects map[string][]byte
	down    bool
}

func (m *memory) Put(_ context.Context, name string, body *io.SectionReader) error {
	data, err := io.ReadAll(body)
	if m.down || err != nil || int64(len(data)) != body.Size() {
		return errors.New("down")
	}
	m.objects[name] = data
	return nil
}

func (m *memory) Get(_ context.Context, name string) (io.ReadCloser, error) {
	data, ok := m.objects[name]
	switch {
	case m.down:
		return nil, errors.New("down")
	case !ok:
		return nil, nil
	}
	return io.NopCloser(bytes.NewReader(data)), nil
}

// TestArchive: complete logs that are for the archive go there, over failures and
// restarts, and come back from it byte by byte when they are not here any more.
func TestArchive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKept(t)
		m := &memory{objects: map[string][]byte{}, down: true}
		k.archive = m
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		run := func() { k.RunArchive(ctx); close(done) }
		go run()
		k.limits.Log = logs.MinBytes
		mine, here, runs := key("ann", 1), key("ann", 2), key("ann", 3)
		for i := range 20 {
			k.append(mine, Piece{Offset: int64(i) * 4096, Data: []byte(strings.Repeat(string(rune('a'+i)), 4096)), End: i == 19, Archive: true})
		}
		k.append(here, Piece{Data: []byte("here"), End: true})
		k.append(runs, Piece{Data: []byte("runs"), Archive: true})
		want := k.text(mine)
		wait := func(d time.Duration) { time.Sleep(d); synctest.Wait() }
		wait(time.Minute)
		if len(m.objects) != 0 || k.Due() != 1 {
			t.Fatalf("%d objects, %d due", len(m.objects), k.Due())
		}
		cancel()
		<-done
		ctx, cancel = context.WithCancel(t.Context())
		done = make(chan struct{})
		k.restart()
		k.archive, m.down = m, false
		go run()
		wait(time.Minute)
		if len(m.objects) != 1 || m.objects[mine.object()] == nil || k.Due() != 0 {
			t.Errorf("objects %d, %d due", len(m.objects), k.Due())
		}
		if st, ok := k.State(mine); !ok || !st.Archived || !st.Complete {
			t.Errorf("state %+v, %v", st, ok)
		}
		all := k.limits.All
		k.limits.All = 0
		k.prune()
		k.limits.All = all
		if got := k.text(mine); got != "-" || k.Bytes() != 0 {
			t.Errorf("removed: %q, %d bytes are counted", got, k.Bytes())
		}
		for _, restart := range []bool{false, true} {
			c, err := k.OpenArchived(t.Context(), mine)
			if err != nil || c == nil || !c.Complete {
				t.Fatalf("brought back: %+v, %v", c, err)
			}
			c.Close()
			if got := k.text(mine); got != want {
				t.Errorf("brought back %d bytes, want %d", len(got), len(want))
			}
			if restart {
				k.restart()
				k.archive = m
			}
			if n := int64(logs.MinBytes + perLog); k.Bytes() > n || k.Bytes() < n-4096 {
				t.Errorf("%d bytes are counted", k.Bytes())
			}
		}
		if c, err := k.OpenArchived(t.Context(), here); c != nil || err != nil {
			t.Errorf("a log that is not archived: %v, %v", c, err)
		}
		cancel()
		<-done
	})
}

// slowly is an archive that gives an object when it is told to, and says how many
// are asked for at a time.
type slowly struct {
	memory
	asked chan string
	now   chan struct{}
}

func (s *slowly) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	s.asked <- name
	<-s.now
	return s.memory.Get(ctx, name)
}

// TestManyReaders: of what many readers want at a time out of the archive, each log
// comes once, and of one user one at a time. What comes when the disk is full takes no
// other log's place.
func TestManyReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKept(t)
		s := &slowly{memory{objects: map[string][]byte{}}, make(chan string, 100), make(chan struct{})}
		k.archive = s
		var files bytes.Buffer
		if err := writeObject(&files, filesIn(t.TempDir())); err != nil {
			t.Fatal(err)
		}
		hers := []Key{key("ann", 1), key("ann", 2)}
		his := key("bob", 3)
		for _, at := range append(hers, his) {
			s.objects[at.object()] = files.Bytes()
		}
		var readers sync.WaitGroup
		read := func(at Key) {
			readers.Go(func() {
				if c, err := k.OpenArchived(t.Context(), at); err != nil || c == nil {
					t.Errorf("%v: %v, %v", at, c, err)
				} else {
					c.Close()
				}
			})
		}
		for range 5 {
			read(hers[0])
			read(hers[1])
		}
		synctest.Wait()
		read(his)
		synctest.Wait()
		if len(s.asked) != 2 {
			t.Errorf("%d come at a time, want one of each user", len(s.asked))
		}
		left, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := k.OpenArchived(left, hers[1]); !errors.Is(err, context.Canceled) {
			t.Errorf("a reader who has gone: %v", err)
		}
		close(s.now)
		readers.Wait()
		if len(s.asked) != 3 || len(k.restores) != 0 {
			t.Errorf("%d were asked for, %d are under way", len(s.asked), len(k.restores))
		}
	})
}

// TestRestoreOnAFullDisk: what no longer fits takes no other log's place.
func TestRestoreOnAFullDisk(t *testing.T) {
	k := newKept(t)
	k.append(key("ann", 1), Piece{Data: []byte("hers"), End: true})
	dir, m := t.TempDir(), &memory{objects: map[string][]byte{}}
	if err := os.WriteFile(filepath.Join(dir, "00000000000000000000.log"), []byte("his"), 0o600); err != nil {
		t.Fatal(err)
	}
	var files bytes.Buffer
	if err := writeObject(&files, filesIn(dir)); err != nil {
		t.Fatal(err)
	}
	his := key("bob", 2)
	m.objects[his.object()] = files.Bytes()
	k.archive = m
	looks := 0
	k.free = func(string) (int64, error) { // what comes fills it
		looks++
		return k.limits.Free + int64(1-looks), nil
	}
	if _, err := k.OpenArchived(t.Context(), his); !errors.Is(err, ErrFull) {
		t.Errorf("got %v", err)
	}
	if got := k.text(key("ann", 1)); got != "hers" {
		t.Errorf("another user's log: %q", got)
	}
	if got := k.text(his); got != "-" {
		t.Errorf("of what did not fit there is %q", got)
	}
}

// TestUnpackHostile: nothing but the files of a log comes out of an object.
func TestUnpackHostile(t *testing.T) {
	const good = "00000000000000000000.log"
	for name, h := range map[string]tar.Header{
		"way out":   {Name: "../../" + good, Typeflag: tar.TypeReg},
		"link":      {Name: good, Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"},
		"directory": {Name: good, Typeflag: tar.TypeDir},
		"other":     {Name: "complete", Typeflag: tar.TypeReg},
		"large":     {Name: good, Typeflag: tar.TypeReg, Size: 101},
	} {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		w := tar.NewWriter(z)
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		w.Write(make([]byte, h.Size))
		w.Close()
		z.Close()
		dir := filepath.Join(t.TempDir(), "in")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := unpack(&b, dir, 100, func() error { return nil }); err == nil || !strings.Contains(err.Error(), "which no log has") {
			t.Errorf("%s: %v", name, err)
		}
		if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
			t.Errorf("%s: left %v, %v", name, files, err)
		}
	}
}
