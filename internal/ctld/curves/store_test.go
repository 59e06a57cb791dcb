package curves

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/node"
)

// shelf is a store with a clock of the test's.
type shelf struct {
	*Store
	now  time.Time
	most int64
	room bool
}

func newShelf(t *testing.T, dir string) *shelf {
	t.Helper()
	s := &shelf{now: time.Unix(1_800_000_000, 0), most: 1 << 20, room: true}
	s.Store = Open(Config{Dir: dir, Most: func() int64 { return s.most }, Room: func() bool { return s.room }, Now: func() time.Time { return s.now }, Log: slog.New(slog.DiscardHandler)})
	return s
}

func key(user string, n int) Key {
	return Key{User: user, UUID: fmt.Sprintf("uuid-%d", n), Attempt: 1}
}

// files are those that are stored.
func (s *shelf) files() []string {
	out, _ := filepath.Glob(filepath.Join(s.Dir, "*", "*"))
	return out
}

// TestStore follows a rank from its first sample over a restart of the controller to
// after its end.
func TestStore(t *testing.T) {
	dir := t.TempDir()
	s := newShelf(t, dir)
	k, mem := key("../ann", 1), int64(3<<30)
	use := func(second int64) *node.LiveUse {
		return &node.LiveUse{AtMS: 5000 + 1000*second, CPUSeconds: 2 * float64(second), Mem: 1 << 30, GPUMem: &mem, Net: &node.NetUse{Received: 100 * second, Sent: second},
			GPU: &node.GPUUse{Utilization: 80, Samples: 1 + second, EnergyJ: 1000 + 300*float64(second)}}
	}
	for second := range int64(21) {
		s.Put(k, use(second/10*10)) // a node may say again what it measured
		s.now = s.now.Add(time.Second)
	}
	s.save(false)
	if got := s.files(); len(got) != 0 {
		t.Errorf("a rank that began just now is stored: %v", got)
	}
	s.save(true)
	after := newShelf(t, dir)
	after.now = s.now.Add(10 * time.Second)
	after.Put(k, use(30))
	after.now = after.now.Add(10 * time.Second)
	after.Put(k, use(40))
	c := after.Of(k)
	want := map[Kind][]float64{GPU: {80, 80, 80, 80, 80}, GPUMem: {3.22e9, 3.22e9, 3.22e9, 3.22e9, 3.22e9}, CPU: {-1, 2000, 2000, -1, 2000}, Received: {-1, 100, 100, -1, 100}, Sent: {-1, 1, 1, -1, 1}, Power: {-1, 300, 300, -1, 300}}
	for k, w := range want {
		if diff := cmp.Diff(w, numbers(c, k)); diff != "" {
			t.Errorf("kind %d (-want +got):\n%s", k, diff)
		}
	}
	after.now = after.now.Add(quietFor)
	after.room = false
	after.save(false)
	if after.live[k] == nil {
		t.Error("it was forgotten where it cannot be stored")
	}
	after.room = true
	after.save(false)
	if len(after.live) != 0 {
		t.Error("a rank of which nothing is heard is still in memory")
	}
	if diff := cmp.Diff(c, after.Of(k)); diff != "" {
		t.Errorf("after its end (-want +got):\n%s", diff)
	}
	if err := os.WriteFile(filepath.Join(dir, k.path()), []byte("garbage"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := after.Of(k); got != nil {
		t.Errorf("of a damaged file: %+v", got)
	}
	if got := after.Of(key("ann", 2)); got != nil {
		t.Errorf("of a rank that never was: %+v", got)
	}
}

// TestBound: the oldest of whoever has most go first.
func TestBound(t *testing.T) {
	s := newShelf(t, t.TempDir())
	for i := range 6 {
		for _, user := range []string{"ann", "bob"} {
			if k := key(user, i); user == "ann" || i < 2 {
				s.Put(k, &node.LiveUse{AtMS: 1})
				s.save(true)
				if err := os.Chtimes(filepath.Join(s.Dir, k.path()), s.now, s.now.Add(time.Duration(i)*time.Hour)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	s.most = 5 * perFile
	s.prune()
	s.now = s.now.Add(quietFor)
	s.save(false) // what is in memory is stored again, as it was heard of
	clear(s.live)
	s.prune()
	if got := len(s.files()); got != 5 {
		t.Errorf("%d files are kept", got)
	}
	for i := range 2 {
		if s.Of(key("bob", i)) == nil {
			t.Errorf("bob's %d went for ann's", i)
		}
	}
	s.most = 0
	s.Put(key("eve", 1), &node.LiveUse{AtMS: 1})
	if len(s.live) != 0 {
		t.Error("something is kept where nothing shall be")
	}
}
