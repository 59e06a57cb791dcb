package keep

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gbatch/internal/api"
)

// TestCopies: complete logs go to the other controllers once, over failures and
// restarts, and come back from them; what is for the archive goes there alone.
func TestCopies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKept(t)
		bucket, others := &memory{objects: map[string][]byte{}}, &memory{objects: map[string][]byte{}, down: true}
		begin := func() (end func()) {
			k.archive, k.others = bucket, others
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{}, 2)
			go func() { k.RunArchive(ctx); done <- struct{}{} }()
			go func() { k.RunCopies(ctx); done <- struct{}{} }()
			return func() { cancel(); <-done; <-done }
		}
		wait := func() { time.Sleep(2 * time.Minute); synctest.Wait() }
		end := begin()
		here, away, runs := key("ann", 1), key("ann", 2), key("ann", 3)
		k.append(here, Piece{Data: []byte("here"), End: true})
		k.append(away, Piece{Data: []byte("away"), End: true, Archive: true})
		k.append(runs, Piece{Data: []byte("runs")})
		wait()
		if len(others.objects) != 0 || len(bucket.objects) != 1 {
			t.Errorf("%d copies while nobody answers, and %d archived, want 0 and 1", len(others.objects), len(bucket.objects))
		}
		end()
		k.restart()
		others.down = false
		end = begin()
		wait()
		if len(others.objects) != 1 || others.objects[here.object()] == nil {
			t.Errorf("%d copies, want the one that is complete and not archived", len(others.objects))
		}
		end()
		delete(others.objects, here.object())
		k.restart()
		end = begin()
		wait()
		if len(others.objects) != 0 {
			t.Error("it was copied again")
		}
		end()
	})
}

// TestReceive: a log that one controller gives is there at another one as it was, also
// in the place of less of it.
func TestReceive(t *testing.T) {
	from, to := newKept(t), newKept(t)
	at := key("ann", 1)
	from.append(at, Piece{Data: []byte("begin ")})
	if f, err := from.Give(at.object()); f != nil || err != nil {
		t.Errorf("gave a log that is not complete: %v, %v", f, err)
	}
	from.append(at, Piece{Offset: 6, Data: []byte("end"), End: true})
	give := func() io.Reader {
		t.Helper()
		f, err := from.Give(at.object())
		if err != nil || f == nil {
			t.Fatalf("gave %v, %v", f, err)
		}
		defer f.Close()
		b, err := io.ReadAll(f)
		if err != nil || int64(len(b)) != f.Size() {
			t.Fatalf("read %d bytes of %d, %v", len(b), f.Size(), err)
		}
		return bytes.NewReader(b)
	}
	to.append(at, Piece{Data: []byte("beg")})
	for range 2 {
		if err := to.Receive(t.Context(), at.object(), give()); err != nil {
			t.Fatal(err)
		}
		if got := to.text(at); got != "begin end" {
			t.Errorf("it has %q", got)
		}
	}
	if end, done := to.append(at, Piece{Data: []byte("beg")}); !done || end != 3 {
		t.Errorf("its node is told to go on at %d, %v", end, done)
	}
	to.restart()
	if st, ok := to.State(at); !ok || !st.Complete || st.Archived {
		t.Errorf("after a restart: %+v, %v", st, ok)
	}
	whole, err := io.ReadAll(give())
	if err != nil {
		t.Fatal(err)
	}
	other := key("bob", 2)
	for name, body := range map[string][]byte{
		other.object():                         whole[:len(whole)/2],
		"../" + other.object():                 whole,
		strings.ToUpper(other.object()):        whole,
		"u-bob/../u-bob/" + other.object()[6:]: whole,
		"":                                     whole,
	} {
		if err := to.Receive(t.Context(), name, bytes.NewReader(body)); err == nil {
			t.Errorf("took %q", name)
		}
	}
	if got := to.text(other); got != "-" {
		t.Errorf("of what was refused there is %q", got)
	}
	if left, err := os.ReadDir(to.dir); err != nil || len(left) != 1 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// unsure is other controllers of which one does not answer.
type unsure struct{ memory }

func (*unsure) Get(context.Context, string) (io.ReadCloser, error) {
	return nil, api.Errorf(api.CodeUnavailable, "one does not answer")
}

// TestFromOthers: a log that is not here comes from another controller, or out of the
// archive; where one that may have it does not answer, that is said.
func TestFromOthers(t *testing.T) {
	k, from := newKept(t), newKept(t)
	at := key("ann", 1)
	from.append(at, Piece{Data: []byte("text"), End: true})
	f, err := from.Give(at.object())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	whole, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	k.others = &unsure{}
	var e *api.Error
	if c, err := k.OpenArchived(t.Context(), at); c != nil || !errors.As(err, &e) || e.Code != api.CodeUnavailable {
		t.Errorf("nobody has it, as far as is known: %v, %v", c, err)
	}
	has := &memory{objects: map[string][]byte{at.object(): whole}}
	for name, from := range map[string]struct{ others, archive Archive }{"another controller": {has, nil}, "the archive": {&unsure{}, has}} {
		k.others, k.archive = from.others, from.archive
		c, err := k.OpenArchived(t.Context(), at)
		if err != nil || c == nil {
			t.Fatalf("from %s: %v, %v", name, c, err)
		}
		c.Close()
		if got := k.text(at); got != "text" {
			t.Errorf("from %s came %q", name, got)
		}
		all := k.limits.All
		k.limits.All = 0
		k.prune()
		k.limits.All = all
	}
}
