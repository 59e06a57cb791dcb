package ctld

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gbatch/internal/api"
	"gbatch/internal/client"
	"gbatch/internal/ctld/backup"
	"gbatch/internal/ctld/site"
	"gbatch/internal/replica"
)

// TestRemovedStillRuns: a controller that was removed says so, whatever it is asked, and not that no one leads: whether it could be
// told, or did not run then.
func TestRemovedStillRuns(t *testing.T) {
	members, local, _ := group(t, 2)
	c := memberConfig(t, t.TempDir(), 2)
	initJoining(t, c, members[0])
	third, _, stop := runMember(t, c)
	// Its word does not count: the first leads on without it.
	if err := members[0].replica.Add(replica.Member{Name: c.Replica.Name, Address: c.Replica.Address()}); err != nil {
		t.Fatal(err)
	}
	for _, m := range []*Member{members[1], third} {
		waitFor(t, "it knows of all", func() bool {
			all, err := m.replica.Members()
			return err == nil && len(all) == 3
		})
	}
	stop()
	for _, name := range []string{"c2", "c1"} {
		if err := members[0].replica.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	_, again, _ := runMember(t, c)
	for _, l := range []*client.Client{local[1], again} {
		var err error
		t.Cleanup(func() {
			if t.Failed() {
				t.Logf("it said last: %v", err)
			}
		})
		waitFor(t, "it says that it was removed", func() bool {
			_, err = l.Site(t.Context())
			return client.IsCode(err, api.CodeElsewhere) && strings.Contains(err.Error(), "does not take part")
		})
	}
}

// TestEmptiedBesideOthers: a controller that has the site's keys and nothing else, as its disk was emptied, or with what a backup had,
// begins nothing of its own where another one leads, and says what to do. So does one that began when the others
// could not be reached. Where nobody leads it begins.
func TestEmptiedBesideOthers(t *testing.T) {
	members, local, _ := group(t, 2)
	waitFor(t, "the first leads", func() bool { _, err := local[0].Site(t.Context()); return err == nil })
	keys, err := backup.Keys(members[0].cfg.Dir)
	if err != nil {
		t.Fatal(err)
	}
	c := members[1].cfg
	c.Dir, c.Socket, c.Listen = filepath.Join(t.TempDir(), "c1"), filepath.Join(t.TempDir(), "s"), freeAddress(t)
	c.Replica = &site.Replica{Name: "c1", Listen: freeAddress(t), Patience: 5}
	c.Advertise = members[0].cfg.Listen + ", " + c.Listen
	err = InitMember(c, &api.JoinFile{NewController: api.NewController{Name: "c1", Address: c.Replica.Address()}, Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(c.ReplicaPath()); err != nil {
		t.Fatal(err)
	}
	open := func() (*Member, error) {
		return OpenMember(func() (site.Config, error) { return c, nil }, nil, slog.New(slog.DiscardHandler))
	}
	refused := func(when string) {
		t.Helper()
		m, err := open()
		if err == nil {
			t.Fatal(when, ": it begins", m.Close())
		}
		for _, want := range []string{"controller c0 leads", "gadm controllers remove c1", "gctld init --join FILE"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", when, err, want)
			}
		}
	}
	refused("it has keys alone")
	for _, made := range []string{c.ReplicaPath(), filepath.Join(c.Dir, site.StoreDir)} {
		if _, err := os.Stat(made); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is there: %v", made, err)
		}
	}

	others := c.Advertise
	c.Advertise = c.Listen + "," + freeAddress(t) // none is reached
	m, err := open()
	if err != nil {
		t.Fatal(err)
	}
	waitFor(t, "it is its own leader", m.replica.Leading)
	m.cfg.Advertise = others
	if err := m.mayLead(t.Context()); err == nil || !strings.Contains(err.Error(), "controller c0 leads") {
		t.Errorf("it would lead: %v", err)
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	c.Advertise = others
	refused("it began without the others")
	c.Advertise = c.Listen + "," + freeAddress(t)
	if m, err = open(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(m.mayLead(t.Context()), m.Close()); err != nil {
		t.Errorf("where nobody else leads: %v", err)
	}
}
