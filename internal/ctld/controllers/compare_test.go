package controllers

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/api"
	"gbatch/internal/ctld/site"
	"gbatch/internal/pki"
	"gbatch/internal/replica"
)

func config(change func(*site.Config)) func() (site.Config, error) {
	return func() (site.Config, error) {
		c := site.Default()
		if change != nil {
			change(&c)
		}
		return c, nil
	}
}

// TestCompare: what controllers have otherwise than the one that leads is shown, counted and logged
// once; one of another version is not compared, and one whose file cannot be used is named.
func TestCompare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := []replica.Member{{Name: "a", Voter: true, Leads: true}}
		for _, name := range []string{"alike", "differs", "newer", "older", "bad", "silent", "older-joins"} {
			all = append(all, replica.Member{Name: name, Address: name, Voter: name != "older-joins"})
		}
		longer := config(func(c *site.Config) { c.Limits.MaxDuration++; c.Dir = "/elsewhere" })
		var logged strings.Builder
		c := New(&members{all: all}, site.Config{Replica: &site.Replica{Name: "a"}}, slog.New(slog.NewTextHandler(&logged, nil)))
		c.Reach = func(context.Context, string) bool { return true }
		c.Own = func() Statement { return NewStatement("1", config(nil)) }
		c.Ask = func(_ context.Context, address string) (Statement, error) {
			switch address {
			case "differs":
				return NewStatement("1", longer), nil
			case "newer":
				return NewStatement("2", longer), nil
			case "older", "older-joins":
				return Statement{}, nil
			case "bad":
				return NewStatement("1", func() (site.Config, error) { return site.Config{}, errors.New("line 3: no") }), nil
			case "silent":
				return Statement{}, errors.New("no answer")
			}
			return NewStatement("1", config(nil)), nil
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		c.Run(ctx)
		got, err := c.list()
		if err != nil {
			t.Fatal(err)
		}
		want := []api.Controller{{Name: "a", Leads: true, Version: "1"}, {Name: "alike", Version: "1"}, {Name: "differs", Version: "1", Differs: []string{"limits.maxDuration"}},
			{Name: "newer", Version: "2"}, {Name: "older"}, {Name: "bad", Version: "1", Unreadable: "line 3: no"}, {Name: "silent"}, {Name: "older-joins"}}
		for i := range want {
			want[i].Address, want[i].Counts, want[i].Answers = all[i].Address, all[i].Voter, all[i].Name != "silent"
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("controllers (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(map[string]int{"a": 0, "alike": 0, "differs": 1, "newer": 0, "older": 0, "bad": 1, "silent": 0, "older-joins": 0}, c.Odd()); diff != "" {
			t.Errorf("counted (-want +got):\n%s", diff)
		}
		for _, what := range []string{"limits.maxDuration", "so it will not count"} {
			if n := strings.Count(logged.String(), what); n != 1 {
				t.Errorf("%q was logged %d times:\n%s", what, n, logged.String())
			}
		}
	})
}

// TestStuck: a controller that lacks records and takes none is shown and logged once; one that is behind and comes
// on is not, nor is one that has all while nothing happens or that is too old to say.
func TestStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := []replica.Member{{Name: "a", Voter: true, Leads: true}}
		for _, name := range []string{"emptied", "slow", "whole", "older"} {
			all = append(all, replica.Member{Name: name, Address: name, Voter: true})
		}
		var logged strings.Builder
		c := New(&members{all: all}, site.Config{Replica: &site.Replica{Name: "a"}}, slog.New(slog.NewTextHandler(&logged, nil)))
		c.Reach = func(context.Context, string) bool { return true }
		says := func(applied uint64) Statement { return Statement{Version: "1", Applied: applied} }
		c.Own = func() Statement { return says(1000) }
		slowSaid := uint64(100)
		c.Ask = func(_ context.Context, address string) (Statement, error) {
			if address == "slow" {
				slowSaid++
			}
			return map[string]Statement{"emptied": says(3), "slow": says(slowSaid), "whole": says(1000), "older": says(0)}[address], nil
		}
		run := func(d time.Duration, stuck bool) {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), d)
			defer cancel()
			c.Run(ctx)
			got, err := c.list()
			if err != nil {
				t.Fatal(err)
			}
			behind := map[string]uint64{"a": 0, "emptied": 997, "slow": 1000 - slowSaid, "whole": 0, "older": 0}
			for _, x := range got {
				if x.Stuck != (stuck && x.Name == "emptied") || x.Behind != behind[x.Name] {
					t.Errorf("after %v: %+v", d, x)
				}
			}
		}
		run(55*time.Second, false)
		run(2*time.Minute, true)
		if n := strings.Count(logged.String(), "takes none"); n != 1 || !strings.Contains(logged.String(), "name=emptied") {
			t.Errorf("it was logged %d times:\n%s", n, logged.String())
		}
	})
}

// TestComes: one that is reached when it cannot say anything yet, as after a start, or that lacks records then, is asked again at
// once; else they are asked seldom.
func TestComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		began := time.Now()
		all := []replica.Member{{Name: "a", Voter: true, Leads: true}, {Name: "b", Address: "b", Voter: true}}
		c := New(&members{all: all}, site.Config{Replica: &site.Replica{Name: "a"}}, slog.New(slog.DiscardHandler))
		c.Reach = func(context.Context, string) bool { return true }
		c.Own = func() Statement { return Statement{Applied: 1000} }
		c.Ask = func(context.Context, string) (Statement, error) {
			asked.Add(1)
			if s := time.Since(began); s < 3*time.Second {
				return Statement{}, errors.New("no answer")
			} else if s < 5*time.Second {
				return Statement{Applied: 10}, nil
			}
			return Statement{Applied: 1000}, nil
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go c.Run(ctx) // ends with the test
		for _, until := range []struct {
			second  time.Duration
			asked   int32
			answers bool
			behind  uint64
		}{{2, 3, false, 0}, {4, 5, true, 990}, {14, 6, true, 0}, {24, 7, true, 0}} {
			time.Sleep(time.Until(began.Add(until.second*time.Second + time.Millisecond)))
			synctest.Wait()
			n := asked.Load()
			got, err := c.list()
			if err != nil || n != until.asked || got[1].Answers != until.answers || got[1].Behind != until.behind {
				t.Errorf("after %d s: asked %d times, %+v (%v)", until.second, n, got, err)
			}
		}
	})
}

// TestAsk: a controller answers who asks, over a connection that any member could have, and passes
// other members on; one that does not know how says nothing.
func TestAsk(t *testing.T) {
	a, err := pki.Open(t.TempDir(), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	own := NewStatement("1", config(nil))
	accept, dial := a.MemberTLS()
	old := accept.Clone()
	old.NextProtos = dial.NextProtos
	if s, err := Ask(t.Context(), serve(t, accept, own), a.AskTLS()); err != nil || !cmp.Equal(own, s) {
		t.Errorf("it said %v, %v, want %v", s, err, own)
	}
	if s, err := Ask(t.Context(), serve(t, old, own), a.AskTLS()); err != nil || !cmp.Equal(Statement{}, s) {
		t.Errorf("an older one said %v, %v", s, err)
	}
	other, err := pki.Open(t.TempDir(), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	if s, err := Ask(t.Context(), serve(t, accept, own), other.AskTLS()); err == nil {
		t.Errorf("one of another site was told %v", s)
	}
	c, err := tls.Dial("tcp", serve(t, accept, own), dial)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write([]byte("batch")); err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(c); string(b) != "batch" || err != nil {
		t.Errorf("a member got %q, %v", b, err)
	}
}

// serve takes one connection at the address, and writes back the first that it reads of it.
func serve(t *testing.T, conf *tls.Config, own Statement) (address string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() {
		_ = ln.Close() // ends the goroutine
		<-done
	})
	go func() { // one connection, or until the listener is closed
		defer close(done)
		c, err := Answering(tls.NewListener(ln, conf), func() Statement { return own }, func(c net.Conn) { c.Close() }).Accept()
		if err != nil {
			return
		}
		defer c.Close()
		var b [16]byte
		if n, err := c.Read(b[:]); err == nil {
			_, _ = c.Write(b[:n]) // else the test reads nothing
		}
	}()
	return ln.Addr().String()
}
