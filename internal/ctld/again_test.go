package ctld

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/client"
	"gbatch/internal/ctld/backup"
	"gbatch/internal/ctld/site"
	"gbatch/internal/hosttest"
	"gbatch/internal/replica"
)

// freeAddress is one that nobody listens at.
func freeAddress(t *testing.T) string {
	t.Helper()
	address, err := hosttest.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// group are a site's controllers, of which the first leads at first. Stop ends that one.
func group(t *testing.T, n int) (members []*Member, local []*client.Client, stop func()) {
	t.Helper()
	dir := t.TempDir()
	for i := range n {
		c := memberConfig(t, dir, i)
		if i == 0 {
			if _, err := Init(c); err != nil {
				t.Fatal(err)
			}
		} else {
			initJoining(t, c, members[0])
		}
		m, l, end := runMember(t, c)
		members, local = append(members, m), append(local, l)
		if i == 0 {
			stop = end
			waitFor(t, "the first leads", func() bool { _, err := local[0].Site(t.Context()); return err == nil })
		} else if err := members[0].replica.Add(replica.Member{Name: c.Replica.Name, Address: c.Replica.Address(), Voter: true}); err != nil {
			t.Fatal(err)
		}
	}
	return members, local, stop
}

// memberConfig is of one of several controllers, each with a directory in dir.
func memberConfig(t *testing.T, dir string, i int) site.Config {
	t.Helper()
	c := site.Default()
	c.Dir, c.Socket, c.Listen, c.ReserveMiB = filepath.Join(dir, fmt.Sprint("c", i)), filepath.Join(dir, fmt.Sprint("s", i)), freeAddress(t), 0
	c.Logs.FreeMiB = 0
	c.Replica = &site.Replica{Name: fmt.Sprint("c", i), Listen: freeAddress(t), Patience: 5} // others use the machine
	return c
}

// initJoining makes the directory of a controller that is to join another one.
func initJoining(t *testing.T, c site.Config, first *Member) {
	t.Helper()
	keys, err := backup.Keys(first.cfg.Dir)
	if err == nil {
		err = InitMember(c, &api.JoinFile{NewController: api.NewController{Name: c.Replica.Name, Address: c.Replica.Address()}, Keys: keys})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// runMember runs a controller until it is stopped, or the test ends.
func runMember(t *testing.T, c site.Config) (m *Member, local *client.Client, stop func()) {
	t.Helper()
	m, err := OpenMember(func() (site.Config, error) { return c, nil }, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan error, 1)
	go func() { over <- errors.Join(m.Run(ctx), m.Close()) }() // awaited in stop
	local = &client.Client{Address: "unix://" + c.Socket, Timeout: time.Minute}
	stop = sync.OnceFunc(func() {
		local.Close()
		cancel()
		if err := <-over; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return m, local, stop
}

// TestHandsOver: a controller that is stopped while it leads has another one lead, which does not have to find out that it has ended.
func TestHandsOver(t *testing.T) {
	members, local, stop := group(t, 3)
	if _, err := local[0].Submit(t.Context(), &api.SubmitRequest{Job: []byte(hushJob)}, ""); err != nil {
		t.Fatal(err)
	}
	stop()
	if members[1].replica.Leader() == "c0" && members[2].replica.Leader() == "c0" {
		t.Error("the others still follow the one that was stopped")
	}
	waitFor(t, "another one leads", func() bool {
		return slices.ContainsFunc(local[1:], func(c *client.Client) bool {
			list, err := c.Jobs(t.Context(), client.JobFilter{All: true})
			return err == nil && list.Total == 1
		})
	})
}

// TestLeadsAgain: a controller that leads no more and leads again reads no record of a job again, though somebody follows its events
// all the while. It has all that was stored, whoever stored it.
func TestLeadsAgain(t *testing.T) {
	members, local, _ := group(t, 2)
	submit := func(at, n int) {
		t.Helper()
		for range n {
			if _, err := local[at].Submit(t.Context(), &api.SubmitRequest{Job: []byte(hushJob)}, ""); err != nil {
				t.Fatal(err)
			}
		}
	}
	jobs := func(at int) int {
		list, err := local[at].Jobs(t.Context(), client.JobFilter{All: true})
		if err != nil {
			return -1
		}
		return list.Total
	}
	for _, c := range local {
		go func() { // ends with the test
			for t.Context().Err() == nil {
				for range c.Events(t.Context(), client.EventFilter{}) {
				}
				_ = client.Sleep(t.Context(), 10*time.Millisecond)
			}
		}()
	}
	submit(0, 50)
	for round := range 4 {
		from, to := round%2, (round+1)%2
		_, before := members[to].jobs.Counts()
		waitFor(t, "the other one leads", func() bool {
			_ = members[from].replica.Transfer(members[to].cfg.Replica.Name) // where it has not got all yet, it is tried again
			_, err := local[to].Site(t.Context())
			return err == nil
		})
		if got := jobs(to); got != 50+round {
			t.Errorf("round %d: it has %d jobs, want %d", round, got, 50+round)
		}
		if _, read := members[to].jobs.Counts(); round > 0 && read != before {
			t.Errorf("round %d: it has read %d records of jobs again", round, read-before)
		}
		waitFor(t, "the one that led follows", func() bool {
			has, _ := members[from].jobs.Counts()
			return has == 50+round
		})
		submit(to, 1)
	}
}
