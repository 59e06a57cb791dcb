package record

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/oci/journal"
	"gbatch/oci/result"
)

// TestGuest: a guest's record is read with what its container's owner says, and when it is over and the owner
// is released there is left how it ended, and whose it was.
func TestGuest(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "1_0.1.0")
	home := filepath.Join(dir, "box")
	if err := os.MkdirAll(home, 0o700); err != nil {
		t.Fatal(err)
	}
	owner, guest := job.RankID{Job: 1, Attempt: 1}, job.RankID{Job: 1, Task: 1, Attempt: 1}
	spec := job.Spec{Name: "array"}
	lock, err := journal.Create(home)
	if err != nil {
		t.Fatal(err)
	}
	want := Record{ID: guest, Order: api.RunOrder{UUID: "u", User: "alice", Spec: spec}, Cores: "1", Home: &owner}
	if err := errors.Join(Save(dir, Record{ID: owner, Order: api.RunOrder{UUID: "o", Spec: spec}}), SaveGuest(home, want)); err != nil {
		t.Fatal(err)
	}
	g, err := journal.Find(home, guest.String())
	if err != nil {
		t.Fatal(err)
	}
	got, err := OfGuest(home, g)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("record: %v (-want +got):\n%s", err, diff)
	}
	if err := errors.Join(journal.Of(lock).Ended(guest.String(), result.Exit{Code: 3}), GuestOver(home, guest), Shorten(home), lock.Close()); err != nil {
		t.Fatal(err)
	}
	g, err = journal.Find(home, guest.String())
	if err != nil || !g.Over {
		t.Fatalf("%+v, %v", g, err)
	}
	var past Past
	past.AddGuest(guest, g)
	if e, known := past.Find(guest, "u"); !known || e.Code != 3 {
		t.Errorf("its end: %+v, %v", e, known)
	}
	if _, known := past.Find(guest, "of another job"); known {
		t.Error("the end of one job is another one's")
	}
	if _, err := journal.Find(home, owner.String()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the owner is a guest: %v", err)
	}
	if err := errors.Join(GuestOver(t.TempDir(), guest), Shorten(t.TempDir())); err != nil {
		t.Errorf("without a journal: %v", err)
	}
}

// TestPastIsBounded: the first of very many ends is forgotten.
func TestPastIsBounded(t *testing.T) {
	var p Past
	id := func(n int) job.RankID { return job.RankID{Job: job.Number(n + 1), Attempt: 1} }
	for n := range maxPast + 1 {
		p.Add(id(n), "u", result.Exit{Code: n})
	}
	if _, known := p.Find(id(0), "u"); known || len(p.ends) != maxPast {
		t.Errorf("%d ends are known", len(p.ends))
	}
	if e, known := p.Find(id(maxPast), "u"); !known || e.Code != maxPast {
		t.Errorf("the last: %+v, %v", e, known)
	}
}
