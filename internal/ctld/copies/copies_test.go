package copies

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/ctld/controllers"
	"gbatch/internal/ctld/keep"
	"gbatch/internal/ctld/trees"
	"gbatch/internal/hosttest"
	"gbatch/internal/pki"
	"gbatch/internal/replica"
)

// place is another controller, or what answers in its place.
type place struct {
	*Server
	logs    *keep.Store
	trees   *trees.Store
	address string
}

// newPlace serves at an address with the certificate of a site, as members do.
func newPlace(t *testing.T, conf *tls.Config) *place {
	t.Helper()
	p := &place{Server: NewServer(slog.New(slog.DiscardHandler)), logs: newLogs(t), trees: newTrees(t)}
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p.address = tcp.Addr().String()
	ln := controllers.Answering(tls.NewListener(tcp, conf), func() controllers.Statement { return controllers.Statement{} }, p.Take)
	over := make(chan struct{})
	go func() { // until the listener is closed
		defer close(over)
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() { // one of raft's: it reads until it gets nothing more
				defer c.Close()
				_, _ = io.Copy(io.Discard, c)
			}()
		}
	}()
	t.Cleanup(func() {
		_ = ln.Close()
		<-over
		_ = p.Close()
	})
	p.Keep(p.logs, p.trees)
	return p
}

func newLogs(t *testing.T) *keep.Store {
	logs := keep.Open(keep.Options{Dir: t.TempDir(), Now: time.Now, Log: slog.New(slog.DiscardHandler),
		Limits: func() keep.Limits { return keep.Limits{Log: 1 << 20, User: 1 << 30, All: 1 << 30, For: time.Hour} }})
	t.Cleanup(logs.Close)
	return logs
}

func newTrees(t *testing.T) *trees.Store {
	s, err := trees.Open(trees.Config{Dir: t.TempDir(), Now: time.Now, Log: slog.New(slog.DiscardHandler)}, trees.Following(func() int64 { return 0 }))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestOthers: a log is with a majority of the controllers, and comes back from one that
// has it; what does not answer, is of another site or too old for it does not count.
func TestOthers(t *testing.T) {
	ours, err := pki.Open(t.TempDir(), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	another, err := pki.Open(t.TempDir(), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	accept, dial := ours.MemberTLS()
	foreign, _ := another.MemberTLS()
	old := accept.Clone()
	old.NextProtos = dial.NextProtos
	has := newPlace(t, accept)
	stranger, older := newPlace(t, foreign), newPlace(t, old)
	gone, err := hosttest.FreeAddress() // who answers there answers no more
	if err != nil {
		t.Fatal(err)
	}

	all := []replica.Member{{Name: "c1", Voter: true, Leads: true}}
	o := NewOthers("c1", func() ([]replica.Member, error) { return all, nil }, ours.CopyTLS)
	defer o.Close()
	at := keep.Key{User: "ann/..%", UUID: "00000001-0000-4000-8000-000000000000", Attempt: 1}
	from := newLogs(t)
	batch := from.Batch()
	if _, done, err := batch.Append(at, keep.Piece{Data: []byte("text"), End: true}); !done || err != nil {
		t.Fatal(done, err)
	}
	if err := batch.End(); err != nil {
		t.Fatal(err)
	}
	name := "u-ann%2F..%25/00/00000001-0000-4000-8000-000000000000.1.0.tar.gz"
	f, err := from.Give(name)
	if err != nil || f == nil {
		t.Fatalf("packed: %v, %v", f, err)
	}
	defer f.Close()
	body := f.SectionReader

	if err := o.Put(t.Context(), name, body); err != nil {
		t.Errorf("alone: %v", err)
	}
	add := func(name, address string, voter bool) {
		all = append(all, replica.Member{Name: name, Address: address, Voter: voter})
	}
	add("stranger", stranger.address, true)
	add("older", older.address, true)
	if err := o.Put(t.Context(), name, body); err == nil || !strings.Contains(err.Error(), "controller older: ") || !strings.Contains(err.Error(), "too old") || !strings.Contains(err.Error(), "controller stranger: ") {
		t.Errorf("nobody takes it: %v", err)
	}
	add("joining", has.address, false)
	if err := o.Put(t.Context(), name, body); err == nil {
		t.Error("one that does not count was enough")
	}
	all = all[:3]
	add("c2", has.address, true)
	add("gone", gone, true)
	all = append(all[:1], all[3:]...)
	for range 2 { // it is there the second time
		if err := o.Put(t.Context(), name, body); err != nil {
			t.Errorf("two of three have it: %v", err)
		}
	}
	if c, err := has.logs.Open(at); err != nil || c == nil || !c.Complete {
		t.Errorf("the other has %+v, %v", c, err)
	} else {
		c.Close()
	}

	gave, stop := context.WithCancel(t.Context())
	stop()
	if _, err := o.Get(gave, name); err == nil {
		t.Error("somebody who has gone got a log")
	}
	if err := o.Put(t.Context(), name, body); err != nil {
		t.Errorf("after somebody has gone: %v", err)
	}
	back := newLogs(t)
	got, err := o.Get(t.Context(), name)
	if err != nil || got == nil {
		t.Fatalf("got %v, %v", got, err)
	}
	if err := errors.Join(back.Receive(t.Context(), name, got), got.Close()); err != nil {
		t.Error(err)
	}
	if st, ok := back.State(at); !ok || !st.Complete {
		t.Errorf("back is %+v, %v", st, ok)
	}
	unknown := strings.ReplaceAll(name, "00000001", "00000002")
	var e *api.Error
	if got, err := o.Get(t.Context(), unknown); got != nil || !errors.As(err, &e) || !strings.Contains(e.Message, "controller gone") {
		t.Errorf("one that may have it does not answer: %v, %v", got, err)
	}
	all = all[:2]
	if got, err := o.Get(t.Context(), unknown); got != nil || err != nil {
		t.Errorf("nobody has it: %v, %v", got, err)
	}
	has.held.Store(nil)
	if err := o.Put(t.Context(), name, body); err == nil || !strings.Contains(err.Error(), "leads") {
		t.Errorf("one that leads took it: %v", err)
	}
}
