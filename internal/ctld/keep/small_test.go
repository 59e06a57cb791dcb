package keep

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gbatch/oci/logs"
)

// packs lists the files with small logs, and directories of other logs.
func (k *kept) packFiles() (packs, dirs []string) {
	k.t.Helper()
	packs, err := filepath.Glob(filepath.Join(k.dir, "u-*", "small", "*"))
	if err != nil {
		k.t.Fatal(err)
	}
	for _, pattern := range []string{"*", "*.1.0"} {
		if dirs, err = filepath.Glob(filepath.Join(k.dir, "u-*", "[0-9a-f][0-9a-f]", pattern)); err != nil {
			k.t.Fatal(err)
		}
	}
	return packs, dirs
}

func line(n int) string { return fmt.Sprintf("line of %d\n", n) }

// batch takes in small logs, all at once.
func (k *kept) batch(user string, numbers ...int) error {
	k.t.Helper()
	b := k.Batch()
	for _, n := range numbers {
		if end, done, err := b.Append(key(user, n), Piece{Data: []byte(line(n)), End: true}); err != nil || !done || end != int64(len(line(n))) {
			k.t.Fatalf("log %d: %d, %v, %v", n, end, done, err)
		}
	}
	return b.End()
}

// check says that these logs are here, and no others.
func (k *kept) check(user string, numbers ...int) {
	k.t.Helper()
	has := map[int]bool{}
	for _, n := range numbers {
		has[n] = true
	}
	for n := range 20 {
		want := "-"
		if has[n] {
			want = line(n)
		}
		if got := k.text(key(user, n)); got != want {
			k.t.Errorf("log %d of %s: %q, want %q", n, user, got, want)
		}
	}
}

// TestSmall: small logs that come complete are in one file of their user, whatever their number; each is
// there before its node hears of it, once, and over restarts. What is longer, or comes in pieces, has a directory.
func TestSmall(t *testing.T) {
	k := newKept(t)
	if err := errors.Join(k.batch("ann", 1, 2, 3, 2), k.batch("ann", 3, 4), k.batch("bob", 5), k.batch("bob", 5)); err != nil {
		t.Fatal(err)
	}
	k.append(key("ann", 6), Piece{Data: []byte("line of")})
	k.append(key("ann", 6), Piece{Offset: 7, Data: []byte(" 6\n"), End: true})
	k.append(key("bob", 7), Piece{Data: []byte(strings.Repeat("x", logs.MaxWhole+1)), End: true})
	k.append(key("bob", 8), Piece{Data: []byte(strings.Repeat("x", logs.MaxWhole)), End: true})
	k.append(key("bob", 9), Piece{End: true})
	for _, restart := range []bool{false, true} {
		if restart {
			was := k.Bytes()
			if k.restart(); k.Bytes() != was {
				t.Errorf("%d bytes are counted after a restart, %d before", k.Bytes(), was)
			}
		}
		if packs, dirs := k.packFiles(); len(packs) != 2 || len(dirs) != 2 {
			t.Errorf("files %q, directories %q", packs, dirs)
		}
		k.check("ann", 1, 2, 3, 4, 6)
		if got := k.text(key("bob", 9)); got != "" {
			t.Errorf("an empty one: %q", got)
		}
		if n, users, _ := k.Counts(); n != 9 || users != 2 {
			t.Errorf("%d logs of %d users", n, users)
		}
		if st, ok := k.State(key("ann", 2)); !ok || !st.Complete || st.Archived || st.Bytes != int64(len(line(2))) || !st.Until.Equal(k.clock) {
			t.Errorf("state %+v, %v", st, ok)
		}
		if end, done := k.append(key("ann", 2), Piece{Offset: 3, Data: []byte("more")}); end != 7 || !done {
			t.Errorf("what is done took more: %d, %v", end, done)
		}
		if bad, err := k.Verify(func(int64) error { return nil }); len(bad) > 0 || err != nil {
			t.Errorf("damaged: %q, %v", bad, err)
		}
	}
}

// TestSmallOfEarlier: a small log that has a directory, as an earlier version made, stays what it is.
func TestSmallOfEarlier(t *testing.T) {
	k := newKept(t)
	if _, done, err := k.Store.append(key("ann", 1), Piece{Data: []byte(line(1)), End: true}); !done || err != nil {
		t.Fatal(done, err)
	}
	k.restart()
	if err := k.batch("ann", 1, 2); err != nil {
		t.Fatal(err)
	}
	k.check("ann", 1, 2)
	if packs, dirs := k.packFiles(); len(packs) != 1 || len(dirs) != 1 {
		t.Errorf("files %q, directories %q", packs, dirs)
	}
}

// TestSmallKilled: wherever the writing of a pack breaks off, what was told to be done is there, the rest
// is there as a whole or not at all, and comes again.
func TestSmallKilled(t *testing.T) {
	k := newKept(t)
	k.sync = func(f *os.File) error {
		if p, _ := k.smallLog(key("ann", 3)); p != nil {
			t.Error("a log is there before it is durable")
		}
		return f.Sync()
	}
	if err := k.batch("ann", 1, 2); err != nil {
		t.Fatal(err)
	}
	packs, _ := k.packFiles()
	before, err := os.ReadFile(packs[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := k.batch("ann", 3, 4); err != nil {
		t.Fatal(err)
	}
	after, err := os.ReadFile(packs[0])
	if err != nil {
		t.Fatal(err)
	}
	third := (len(before) + len(after)) / 2
	for cut := len(before); cut <= len(after); cut++ {
		for _, zeros := range []bool{false, true} { // as the length came to the disk, and the bytes did not
			left := after[:cut:cut]
			if zeros {
				left = append(left, make([]byte, len(after)-cut)...)
			}
			if err := os.WriteFile(packs[0], left, 0o600); err != nil {
				t.Fatal(err)
			}
			k.restart()
			k.checkOld(cut, third, len(after))
			if err := k.batch("ann", 3, 4, 5); err != nil {
				t.Fatal(err)
			}
			k.check("ann", 1, 2, 3, 4, 5)
			k.restart()
			k.check("ann", 1, 2, 3, 4, 5)
			if err := os.Remove(filepath.Join(filepath.Dir(packs[0]), packName(1))); err != nil {
				t.Fatal(err)
			}
		}
	}
	// It was killed before there was anything of a pack: without its directories, and with an empty file.
	for _, dir := range []string{"u-ann/small", "u-ann"} {
		if err := os.RemoveAll(filepath.Join(k.dir, dir)); err != nil {
			t.Fatal(err)
		}
		k.restart()
		k.check("ann")
		if err := k.batch("ann", 1); err != nil {
			t.Fatal(err)
		}
		k.check("ann", 1)
	}
	if err := os.WriteFile(packs[0], nil, 0o600); err != nil {
		t.Fatal(err)
	}
	k.restart()
	k.prune()
	if packs, _ := k.packFiles(); len(packs) != 0 {
		t.Errorf("left %q", packs)
	}
}

// checkOld: of the four logs two were told to be done; the third ends at a place of the file, the fourth at
// its end, and the file was cut.
func (k *kept) checkOld(cut, third, end int) {
	k.t.Helper()
	for n, needs := range []int{1: 0, 2: 0, 3: third, 4: end} {
		switch got := k.text(key("ann", n)); {
		case n == 0 || got == line(n):
		case needs == 0 || cut >= needs:
			k.t.Errorf("cut at %d: log %d is %q", cut, n, got)
		case got != "-" && !strings.Contains(got, "damaged"):
			k.t.Errorf("cut at %d: of log %d there is %q", cut, n, got)
		}
	}
}

// TestSmallNotWritten: of what cannot be made durable nothing is said to be done, and nothing stays; it goes
// into a new pack when it can.
func TestSmallNotWritten(t *testing.T) {
	for _, first := range []bool{true, false} {
		k := newKept(t)
		var want []int
		if !first {
			want = []int{1}
			if err := k.batch("ann", 1); err != nil {
				t.Fatal(err)
			}
		}
		broken := errors.New("the disk is broken")
		k.sync = func(*os.File) error { return broken }
		for range 3 {
			if err := k.batch("ann", 2, 3); !errors.Is(err, broken) {
				t.Errorf("got %v", err)
			}
			k.check("ann", want...)
			if packs, _ := k.packFiles(); len(packs) != len(want) {
				t.Errorf("left %q", packs)
			}
		}
		k.sync = (*os.File).Sync
		if err := k.batch("ann", 2, 3); err != nil {
			t.Fatal(err)
		}
		k.check("ann", append(want, 2, 3)...)
		k.restart()
		k.check("ann", append(want, 2, 3)...)
	}
}

// TestSmallDamaged: whatever single bit the disk changes, no log is read as another text; the others are as
// they were. What is known to be damaged is said, to who reads it and when all is looked through.
func TestSmallDamaged(t *testing.T) {
	k := newKept(t)
	if err := k.batch("ann", 1, 2, 3); err != nil {
		t.Fatal(err)
	}
	packs, _ := k.packFiles()
	good, err := os.ReadFile(packs[0])
	if err != nil {
		t.Fatal(err)
	}
	damaged := "\n[gbatch: 10 bytes of output are damaged on the disk and left out]\n"
	one := len(good) / 3
	for at := range good {
		for bit := range 8 {
			changed := append([]byte(nil), good...)
			changed[at] ^= 1 << bit
			if err := os.WriteFile(packs[0], changed, 0o600); err != nil {
				t.Fatal(err)
			}
			of, word := at/one+1, at%one >= headWord && at%one < packHead
			for _, restart := range []bool{false, true} {
				if restart {
					k.restart()
				}
				for n := 1; n <= 3; n++ {
					got := k.text(key("ann", n))
					switch {
					case n != of || word:
						if got != line(n) {
							t.Fatalf("bit %d of byte %d: log %d is %q", bit, at, n, got)
						}
					case restart && at%one < packHead:
						if got != "-" {
							t.Fatalf("bit %d of byte %d: log %d without its head is %q", bit, at, n, got)
						}
					case got != damaged:
						t.Fatalf("bit %d of byte %d: log %d, which is damaged, is %q", bit, at, n, got)
					}
				}
				bad, err := k.Verify(func(int64) error { return nil })
				if want := !word && (!restart || at%one >= packHead); err != nil || want != (len(bad) == 1) || want && !strings.Contains(bad[0], key("ann", of).UUID) {
					t.Fatalf("bit %d of byte %d, restart %v: found %q, %v", bit, at, restart, bad, err)
				}
			}
			if err := os.WriteFile(packs[0], good, 0o600); err != nil {
				t.Fatal(err)
			}
			k.restart()
		}
	}
}

// TestSmallBounds: packs go as a whole, the oldest first, with their space; one that is full, old or a large part
// of what its user may have is followed by another, so that not all goes at once.
func TestSmallBounds(t *testing.T) {
	k := newKept(t)
	for i := range 6 {
		k.clock = k.clock.Add(2 * time.Hour)
		if err := k.batch("ann", 2*i, 2*i+1); err != nil {
			t.Fatal(err)
		}
	}
	if packs, _ := k.packFiles(); len(packs) != 6 {
		t.Fatalf("%d packs", len(packs))
	}
	k.limits.User = k.Bytes()/2 + 100
	k.prune()
	k.check("ann", 6, 7, 8, 9, 10, 11)
	k.clock = k.clock.Add(24*time.Hour - time.Hour)
	k.prune()
	k.check("ann", 10, 11)
	if packs, _ := k.packFiles(); len(packs) != 1 {
		t.Errorf("files %q", packs)
	}
	if err := k.batch("ann", 12); err != nil { // its pack is too old by now
		t.Fatal(err)
	}
	k.clock = k.clock.Add(2 * time.Hour)
	k.restart()
	k.prune()
	k.check("ann", 12)
	k.limits.All = 0
	k.prune()
	k.check("ann")
	if packs, _ := k.packFiles(); len(packs) != 0 || k.Bytes() != 0 || len(k.users) != 0 {
		t.Errorf("files %q, %d bytes, users %v", packs, k.Bytes(), k.users)
	}
	k.limits.All, k.limits.User = 1<<30, 1<<30
	for i := range 2*maxPackLogs + 10 {
		k.append(key("bob", i), Piece{End: true})
	}
	if packs, _ := k.packFiles(); len(packs) != 3 {
		t.Errorf("%d packs", len(packs))
	}
	k.limits.User = packOfUser * (perSmall + 10)
	for i := range 2 {
		k.append(key("eve", i), Piece{Data: []byte("0123456789"), End: true})
	}
	if packs, _ := k.packFiles(); len(packs) != 5 {
		t.Errorf("%d packs, of a user who may have little", len(packs))
	}
}

// TestSmallNames: a name is one log's, and what is no UUID as usual is none.
func TestSmallNames(t *testing.T) {
	good := Key{User: "ann", UUID: "0123abcd-4567-89ef-0123-456789abcdef", Attempt: 1<<32 - 1, Rank: 7}
	if n, ok := nameOf(good); !ok || n.key("ann") != good {
		t.Errorf("%v, %v", n, ok)
	}
	for _, uuid := range []string{"", "0123ABCD-4567-89ef-0123-456789abcdef", "0123abcd-4567-89ef-0123-456789abcdeg", "0123abcd_4567-89ef-0123-456789abcdef", "0123abcd-4567-89ef-0123-456789abcde"} {
		if n, ok := nameOf(Key{User: "ann", UUID: uuid}); ok {
			t.Errorf("%q is %v", uuid, n)
		}
	}
	for _, path := range []string{"small", "u-ann", "u-ann/00", "ann/small", "u-%/small", "u-a%6e/small"} {
		if user, ok := parsePackDir(path); ok {
			t.Errorf("%q is of %q", path, user)
		}
	}
}
