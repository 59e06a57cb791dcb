package controllers

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/ctld/site"
	"gbatch/internal/replica"
)

// members are some that are only remembered.
type members struct {
	all  []replica.Member
	lead []string // to whom the lead was to go
	fail string   // whom it cannot go to
	open bool     // they are not agreed on

	settled uint64 // how many entries were made to find what is agreed on
}

func (m *members) Settle() error {
	if m.open {
		return errors.New("leadership lost")
	}
	m.settled++
	return nil
}

func (m *members) Members() ([]replica.Member, error) { return slices.Clone(m.all), nil }

func (m *members) Add(x replica.Member) error {
	i := slices.IndexFunc(m.all, func(y replica.Member) bool { return y.Name == x.Name })
	m.all[i] = x
	return nil
}

func (m *members) Remove(string) error { return nil }

func (m *members) Agreed() uint64 { return m.settled }

func (m *members) Transfer(to string) error {
	m.lead = append(m.lead, to)
	if to == m.fail {
		return errors.New("it is far behind")
	}
	return nil
}

func run(t *testing.T, m *members, useless bool, reach func(string) bool, d time.Duration) *Members {
	t.Helper()
	c := New(m, site.Config{Replica: &site.Replica{Name: "a"}}, slog.New(slog.DiscardHandler))
	c.Reach = func(_ context.Context, address string) bool { return reach(address) }
	c.Useless = func() bool { return useless }
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	c.Run(ctx)
	return c
}

// TestJoins: who joins counts when it has answered three times in a row, and not before.
func TestJoins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &members{all: []replica.Member{{Name: "a", Address: "a:1", Voter: true, Leads: true}, {Name: "b", Address: "b:1"}, {Name: "c", Address: "c:1"}}}
		looks := 0
		run(t, m, false, func(address string) bool {
			looks++
			return address == "b:1" || looks%4 != 0 // c fails every second time
		}, 10*time.Second)
		want := []replica.Member{{Name: "a", Address: "a:1", Voter: true, Leads: true}, {Name: "b", Address: "b:1", Voter: true}, {Name: "c", Address: "c:1"}}
		if diff := cmp.Diff(want, m.all); diff != "" {
			t.Errorf("members (-want +got):\n%s", diff)
		}
	})
}

// TestJoinsWithAll: who joins counts when it has what was agreed on, and not before: it votes for nobody without.
func TestJoinsWithAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for applied, counts := range map[uint64]bool{0: false, 1: true} {
			m := &members{all: []replica.Member{{Name: "a", Voter: true, Leads: true}, {Name: "b", Address: "b:1"}}}
			c := New(m, site.Config{Replica: &site.Replica{Name: "a"}}, slog.New(slog.DiscardHandler))
			c.Reach = func(context.Context, string) bool { return true }
			c.Own = func() Statement { return Statement{} }
			c.Ask = func(context.Context, string) (Statement, error) { return Statement{Applied: applied}, nil }
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			c.Run(ctx)
			cancel()
			if m.all[1].Voter != counts {
				t.Errorf("with %d entries it counts: %t", applied, m.all[1].Voter)
			}
		}
	})
}

// TestJoinsLater: who joins counts though it hears of each entry only after it was asked whether it has that.
func TestJoinsLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &members{settled: 5, all: []replica.Member{{Name: "a", Voter: true, Leads: true}, {Name: "b", Address: "b:1"}}}
		c := New(m, site.Config{Replica: &site.Replica{Name: "a"}}, slog.New(slog.DiscardHandler))
		c.Reach = func(context.Context, string) bool { return true }
		c.Own = func() Statement { return Statement{} }
		heard, agreed := uint64(0), uint64(0)
		c.Ask = func(context.Context, string) (Statement, error) {
			heard, agreed = agreed, m.Agreed()
			return Statement{Applied: heard}, nil
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		c.Run(ctx)
		if !m.all[1].Voter {
			t.Error("it does not count")
		}
	})
}

// TestUseless: a controller that can store nothing lets another one lead that answers and counts, but has led for a
// minute before.
func TestUseless(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := []replica.Member{{Name: "a", Voter: true, Leads: true}, {Name: "b", Address: "b:1", Voter: true}, {Name: "c", Address: "c:1", Voter: true}, {Name: "d", Address: "d:1", Voter: true}}
		m := &members{all: all, fail: "c"}
		run(t, m, true, func(address string) bool { return address != "b:1" }, 59*time.Second)
		if len(m.lead) > 0 {
			t.Errorf("within a minute the lead went to %q", m.lead)
		}
		run(t, m, true, func(address string) bool { return address != "b:1" }, 65*time.Second)
		if diff := cmp.Diff([]string{"c", "d"}, m.lead); diff != "" {
			t.Errorf("tried (-want +got):\n%s", diff)
		}
		m.lead = nil
		run(t, m, false, func(string) bool { return true }, 10*time.Minute)
		if len(m.lead) > 0 {
			t.Errorf("one that can store let %q lead", m.lead)
		}
	})
}
