package keep

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gbatch/oci/logs"
)

// kept is a store with a clock and a disk of its own.
type kept struct {
	*Store
	t      *testing.T
	clock  time.Time
	limits Limits
	room   int64 // free on the disk when nothing is kept
}

func newKept(t *testing.T) *kept {
	k := &kept{t: t, clock: time.Unix(1_000_000, 0), limits: Limits{Log: 1 << 20, User: 1 << 30, All: 1 << 30, For: 24 * time.Hour}, room: 1 << 40}
	k.open(t.TempDir())
	t.Cleanup(func() { k.Store.Close() })
	return k
}

func (k *kept) open(dir string) {
	k.t.Helper()
	k.Store = Open(Options{
		Dir: dir, Limits: func() Limits { return k.limits }, Now: func() time.Time { return k.clock }, Log: slog.New(slog.DiscardHandler),
		Free: func(string) (int64, error) { return k.room - k.Bytes(), nil },
	})
}

// restart is a controller that was killed: nothing is closed properly.
func (k *kept) restart() {
	k.t.Helper()
	k.open(k.dir)
	k.find(k.t.Context())
}

func key(user string, n int) Key {
	return Key{User: user, UUID: fmt.Sprintf("%08x-0000-4000-8000-000000000000", n), Attempt: 1}
}

func (k *kept) append(at Key, p Piece) (int64, bool) {
	k.t.Helper()
	b := k.Batch()
	end, done, err := b.Append(at, p)
	if err = errors.Join(err, b.End()); err != nil {
		k.t.Fatal(err)
	}
	return end, done
}

// text is what is kept of a log; "-" if it is not there.
func (k *kept) text(at Key) string {
	k.t.Helper()
	c, err := k.Store.Open(at)
	if err != nil {
		k.t.Fatal(err)
	}
	if c == nil {
		return "-"
	}
	b, err := c.Body(k.t.Context(), logs.Selection{})
	if err != nil {
		k.t.Fatal(err)
	}
	defer b.Close()
	text, err := io.ReadAll(b)
	if err != nil {
		k.t.Fatal(err)
	}
	return string(text)
}

// TestAppend: each byte once and in its place, whatever comes twice or too early;
// what the node does not have any more is said, and what is done takes no more.
func TestAppend(t *testing.T) {
	k := newKept(t)
	at := key("ann", 1)
	for _, tc := range []struct {
		name string
		p    Piece
		end  int64
		done bool
		want string
	}{
		{"first", Piece{Offset: 0, Data: []byte("hello ")}, 6, false, "hello "},
		{"again", Piece{Offset: 0, Data: []byte("hello ")}, 6, false, "hello "},
		{"overlapping", Piece{Offset: 3, Data: []byte("lo wor")}, 9, false, "hello wor"},
		{"too early", Piece{Offset: 20, Data: []byte("x")}, 9, false, "hello wor"},
		{"too early, and done", Piece{Offset: 20, Data: []byte("x"), End: true}, 9, false, "hello wor"},
		{"nothing", Piece{Offset: 9}, 9, false, "hello wor"},
		{"after a gap that is too short", Piece{Offset: 20, Lost: 10, Data: []byte("x")}, 9, false, "hello wor"},
		{"after a gap", Piece{Offset: 20, Lost: 11, Data: []byte("end")}, 23, false,
			"hello wor\n[gbatch: 11 bytes of output are not kept: the log's size limit was reached, or they were damaged on the node]\nend"},
		{"the end again", Piece{Offset: 20, Data: []byte("end"), End: true}, 23, true,
			"hello wor\n[gbatch: 11 bytes of output are not kept: the log's size limit was reached, or they were damaged on the node]\nend"},
		{"after the end", Piece{Offset: 23, Data: []byte("more")}, 27, true,
			"hello wor\n[gbatch: 11 bytes of output are not kept: the log's size limit was reached, or they were damaged on the node]\nend"},
	} {
		end, done := k.append(at, tc.p)
		if end != tc.end || done != tc.done {
			t.Errorf("%s: %d, %v; want %d, %v", tc.name, end, done, tc.end, tc.done)
		}
		if diff := cmp.Diff(tc.want, k.text(at)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
	if got := k.text(key("ann", 2)); got != "-" {
		t.Errorf("another log: %q", got)
	}
}

// TestAppendOverRestarts: pieces that are repeated, reordered and lost, over
// restarts and an open-files bound, come to the very bytes of the node.
func TestAppendOverRestarts(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	k := newKept(t)
	const count = 8
	var whole [count]string
	var at, told [count]int64
	for i := range whole {
		var b strings.Builder
		for b.Len() < 20_000 {
			fmt.Fprintf(&b, "line %d of %d\n", b.Len(), i)
		}
		whole[i] = b.String()
	}
	for left := count; left > 0; {
		if r.IntN(50) == 0 {
			k.restart()
		}
		i := r.IntN(count)
		if told[i] < 0 {
			continue
		}
		from := at[i]
		if r.IntN(10) == 0 {
			from = r.Int64N(int64(len(whole[i])))
		}
		to := min(from+r.Int64N(700), int64(len(whole[i])))
		end, done := k.append(key("ann", i), Piece{Offset: from, Data: []byte(whole[i][from:to]), End: to == int64(len(whole[i]))})
		if r.IntN(10) > 0 { // else the answer is lost
			if at[i] = end; done {
				told[i] = -1
				left--
			}
		}
	}
	for i := range whole {
		if k.text(key("ann", i)) != whole[i] {
			t.Fatalf("seed %d: log %d is not what was written", seed, i)
		}
	}
}

// TestManyOpen: more logs than may have open files.
func TestManyOpen(t *testing.T) {
	k := newKept(t)
	for round := range 3 {
		for i := range maxOpen + 50 {
			k.append(key("ann", i), Piece{Offset: int64(round), Data: []byte{byte('a' + round)}})
		}
	}
	if n := len(k.Store.open); n > maxOpen {
		t.Errorf("%d are open", n)
	}
	for _, i := range []int{0, 17, maxOpen + 49} {
		if got := k.text(key("ann", i)); got != "abc" {
			t.Errorf("log %d: %q", i, got)
		}
	}
}

// TestBounds: what is too old goes, then the oldest of who has too much, then the
// oldest of who has most; after a restart as before.
func TestBounds(t *testing.T) {
	size := int64(8<<10 + perLog)
	for _, tc := range []struct {
		name   string
		change func(k *kept)
		want   string // of ann's five logs and bob's two, in the order of their making
	}{
		{"nothing", func(*kept) {}, "aaaaabb"},
		{"too old", func(k *kept) { k.clock = k.clock.Add(24*time.Hour - 3*time.Minute + time.Second) }, "..aaa.."},
		{"of one user", func(k *kept) { k.limits.User = 3 * size }, "..aaabb"},
		{"of all", func(k *kept) { k.limits.All = 4 * size }, "...aabb"},
		{"disk", func(k *kept) { k.room, k.limits.Free = 10*size, 7*size }, "....abb"},
		{"all of it", func(k *kept) { k.limits.All = 0 }, "......."},
	} {
		for _, restart := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, restart %v", tc.name, restart), func(t *testing.T) {
				k := newKept(t)
				var keys []Key
				for i, user := range "ababaaa" { // in the order of time; sorted below
					k.clock = k.clock.Add(time.Minute)
					at := key(string(user), i)
					k.append(at, Piece{Data: make([]byte, 8<<10), End: true})
					files, _ := filepath.Glob(filepath.Join(k.dir, at.path(), "*"))
					for _, f := range files { // the files' times are the clock's
						if err := os.Chtimes(f, k.clock, k.clock); err != nil {
							t.Fatal(err)
						}
					}
					keys = append(keys, at)
				}
				tc.change(k)
				if restart {
					k.restart()
				}
				k.prune()
				got := ""
				for _, user := range "ab" {
					for _, at := range keys {
						if at.User == string(user) {
							if k.text(at) == "-" {
								got += "."
							} else {
								got += string(user)
							}
						}
					}
				}
				// Ann's are the first, third, fifth, sixth and seventh; bob's the second and fourth.
				if got != tc.want {
					t.Errorf("kept %s, want %s", got, tc.want)
				}
				var sum int64
				for _, n := range k.users {
					sum += n
				}
				if want := int64(strings.Count(got, "a")+strings.Count(got, "b")) * size; k.Bytes() != want || sum != want {
					t.Errorf("%d bytes are counted, %d of users; want %d", k.Bytes(), sum, want)
				}
			})
		}
	}
}

// TestFullDisk: nothing is taken while there is no room, and again when there is.
func TestFullDisk(t *testing.T) {
	k := newKept(t)
	if err := k.Room(); err != nil {
		t.Fatal(err)
	}
	k.room, k.limits.Free = 100, 101
	if err := k.Room(); !errors.Is(err, ErrFull) {
		t.Errorf("full: %v", err)
	}
	k.room = 1000
	if err := k.Room(); err != nil {
		t.Errorf("with room: %v", err)
	}
}

// TestPrunedWhileWritten: what is removed of a log that is still written does not
// come again; the rest does.
func TestPrunedWhileWritten(t *testing.T) {
	k := newKept(t)
	at := key("ann", 1)
	k.append(at, Piece{Data: []byte("0123456789")})
	k.limits.All = 0
	k.prune()
	if got := k.text(at); got != "-" {
		t.Errorf("removed: %q", got)
	}
	k.limits.All = 1 << 30
	if end, _ := k.append(at, Piece{Offset: 0, Data: []byte("0123456789")}); end != 10 {
		t.Errorf("told to go on at %d", end)
	}
	k.append(at, Piece{Offset: 10, Data: []byte("end")})
	want := "\n[gbatch: 10 bytes of output are not kept: the log's size limit was reached, or they were damaged on the node]\nend"
	if diff := cmp.Diff(want, k.text(at)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestLogIsBounded: of one log the beginning and the end stay, and no more is
// counted than is there.
func TestLogIsBounded(t *testing.T) {
	k := newKept(t)
	at := key("ann", 1)
	k.limits.Log = logs.MinBytes
	for i := range 100 {
		k.append(at, Piece{Offset: int64(i) * 4096, Data: []byte(strings.Repeat(string(rune('0'+i%10)), 4096))})
	}
	got := k.text(at)
	if !strings.HasPrefix(got, "000") || !strings.HasSuffix(got, "999") || !strings.Contains(got, "bytes of output are not kept") || len(got) > logs.MinBytes+200 {
		t.Errorf("%d bytes, %.10q to %q", len(got), got, got[len(got)-10:])
	}
	if k.Bytes() > logs.MinBytes+perLog {
		t.Errorf("%d bytes are counted", k.Bytes())
	}
}

// FuzzKey: whatever a user is called, its logs are in one directory below the
// store's, and found again.
func FuzzKey(f *testing.F) {
	for _, name := range []string{"ann", "..", ".", "", "a/b", "DOM\\ann", "a%2fb", "\x00", "ä", "~"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, user string) {
		k := key(user, 7)
		p := k.path()
		if !filepath.IsLocal(p) || strings.Count(p, "/") != 2 {
			t.Fatalf("%q leads to %q", user, p)
		}
		if back, ok := parseKey(p); !ok || back != k {
			t.Fatalf("%q is read as %v, %v", p, back, ok)
		}
	})
}

// TestVerify: a bit that the disk changes in a log is found in that log and told to who reads it; one
// that is still written goes on where it is whole, so that its node sends the rest again.
func TestVerify(t *testing.T) {
	k := newKept(t)
	pace := func(int64) error { return nil }
	text := []byte(strings.Repeat("0123456789abcdef", 1024))
	mine, other := key("ann", 1), key("bob", 2)
	k.append(mine, Piece{Data: text})
	k.append(other, Piece{Data: text, End: true})
	k.restart()
	if bad, err := k.Verify(pace); err != nil || len(bad) > 0 {
		t.Fatal(bad, err)
	}
	for _, of := range []Key{mine, other} {
		path := filepath.Join(k.dir, of.path(), "00000000000000000000.log")
		changed := slices.Clone(text)
		changed[5000] ^= 1
		if err := os.WriteFile(path, changed, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	bad, err := k.Verify(pace)
	if err != nil || len(bad) != 2 || !strings.HasPrefix(bad[0], "4096 bytes of the log of "+mine.UUID) {
		t.Errorf("damaged %q, %v", bad, err)
	}
	if got := k.text(other); got != string(text[:4096])+"\n[gbatch: 4096 bytes of output are damaged on the disk and left out]\n"+string(text[8192:]) {
		t.Errorf("it is read as %d bytes", len(got))
	}
	if end, _ := k.append(mine, Piece{Offset: int64(len(text)), Data: []byte("more")}); end != 4096 {
		t.Errorf("its node is told to go on at %d", end)
	}
	k.append(mine, Piece{Offset: 4096, Data: append(text[4096:], "more"...)})
	if got := k.text(mine); got != string(text)+"more" {
		t.Errorf("%d bytes", len(got))
	}
}
