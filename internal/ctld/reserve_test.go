package ctld

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/client"
	"gbatch/internal/ctld/site"
	"gbatch/internal/job"
	"gbatch/internal/node"
)

// TestReservedGPUs proves that a reservation of single GPUs is made, listed and
// kept over a restart, and that a job gets at them by its UUID only.
func TestReservedGPUs(t *testing.T) {
	s := newSite(t, nil)
	inv := &node.Inventory{Hostname: "n1", Cluster: 1, Bridge: true, Gang: true, CPUs: 8, MemBytes: 32 << 30}
	for i := range 2 {
		inv.GPUs = append(inv.GPUs, node.GPU{UUID: fmt.Sprint("GPU-", i), Model: "A100", Index: i, MemBytes: 40 << 30, NUMA: -1})
	}
	s.node("n1").sync(inv)
	now := time.Now().UTC().Truncate(time.Second)
	made, err := s.Reserve(t.Context(), api.Reservation{Name: "demo", Start: now, End: now.Add(1000 * time.Hour), Nodes: []string{"n1"}, GPUs: []string{"1"}})
	if err != nil {
		t.Fatal(err)
	}
	s.stop()
	s.start()
	l, err := s.Reservations(t.Context())
	if err != nil || len(l.Reservations) != 1 || l.Reservations[0].UUID != made.UUID || fmt.Sprint(l.Reservations[0].GPUs) != "[GPU-1]" {
		t.Fatalf("reservations after a restart: %+v, %v; made %+v", l, err, made)
	}
	ask := func(gpus int, more string) string {
		doc := fmt.Sprintf(`{"name":"j","request":{"resources":{"gpus":%d,"cpus":1,"cpuMemoryGb":1},"docker":{"image":"busybox:1","command":"true"}%s}}`, gpus, more)
		return s.submit(&api.SubmitRequest{Job: []byte(doc)}, "").UUID
	}
	want := func(id string, state job.State) {
		t.Helper()
		d := s.job(id)
		for deadline := time.Now().Add(time.Minute); d.State != state && time.Now().Before(deadline); {
			d, err = s.Job(t.Context(), id, client.JobOptions{Wait: time.Second, Version: d.Version})
			if err != nil {
				t.Fatal(err)
			}
		}
		if d.State != state {
			t.Errorf("job %d is %s: %s: want %s", d.Number, d.State, d.ReasonText, state)
		}
	}
	named := fmt.Sprintf(`,"scheduling":{"reservationIds":["%s"]}`, made.UUID)
	want(ask(1, ""), job.Assigned)
	other := ask(1, "")
	want(ask(1, named), job.Assigned)
	if d := s.job(other); d.State != job.Queued || d.Position != 1 {
		t.Errorf("the job that does not name the reservation is %s, %d in the queue", d.State, d.Position)
	}
}

// TestReservationsForOthers proves that to name a reservation which is for others
// opens nothing: who does is told at once.
func TestReservationsForOthers(t *testing.T) {
	s := newSite(t, func(c *site.Config) {
		c.Projects = []site.Project{{Name: "default"}, {Name: "lab", Members: byName("bob")}}
	})
	ann, bob := s.user("ann"), s.user("bob")
	s.node("n1")
	now := time.Now().UTC()
	for name, r := range map[string]api.Reservation{"course": {Projects: []string{"lab"}}, "own": {Users: []string{"bob"}}, "free": {}} {
		r.Name, r.Start, r.End, r.Count = name, now, now.Add(time.Hour), 1
		made, err := s.Reserve(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		for _, tc := range []struct {
			who     *client.Client
			project string
			allowed bool
		}{
			{ann, "default", name == "free"},
			{bob, "default", name != "course"},
			{bob, "lab", true},
		} {
			doc := fmt.Sprintf(`{"name":"j","request":{"resources":{"gpus":0,"cpus":1,"cpuMemoryGb":1},"docker":{"image":"busybox:1","command":"true"},"scheduling":{"reservationIds":["%s"]}}}`, made.UUID)
			_, err := tc.who.Submit(t.Context(), &api.SubmitRequest{Job: []byte(doc), Project: tc.project}, "")
			if tc.allowed && err != nil || !tc.allowed && !client.IsCode(err, api.CodeDenied) {
				t.Errorf("%s, named in project %s: %v; allowed is %t", name, tc.project, err, tc.allowed)
			}
		}
		if err := s.Unreserve(t.Context(), name, false); err != nil { // the next one wants the same node
			t.Fatal(err)
		}
	}
}

// TestReservationsAgain: one that comes again goes by the clock of its zone, is there
// after a restart, leaves one of its times out, and is refused without a zone.
func TestReservationsAgain(t *testing.T) {
	s := newSite(t, nil)
	s.node("n1")
	now := time.Now().UTC().Truncate(time.Minute)
	r := api.Reservation{Name: "night", Start: now.AddDate(0, 0, 1), End: now.AddDate(0, 0, 1).Add(time.Hour), Nodes: []string{"n1"}, Maintenance: true,
		Every: &api.Recurrence{Schedule: fmt.Sprintf("%d * * * *", now.Minute()), Zone: "Europe/Atlantis"}}
	if _, err := s.Reserve(t.Context(), r); !client.IsCode(err, api.CodeBadRequest) {
		t.Errorf("a zone that is nowhere: %v", err)
	}
	r.Every.Zone = "Europe/Brussels"
	made, err := s.Reserve(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	s.stop()
	s.start()
	if err := s.Unreserve(t.Context(), "night", true); err != nil {
		t.Fatal(err)
	}
	l, err := s.Reservations(t.Context())
	if err != nil || len(l.Reservations) != 1 {
		t.Fatalf("reservations after a restart: %+v, %v", l, err)
	}
	got := l.Reservations[0]
	if !made.Start.Equal(r.Start) || len(made.Every.Upcoming) != 3 || !got.Start.Equal(made.Every.Upcoming[0].Start) || got.Every.Schedule != r.Every.Schedule || got.Every.Zone != "Europe/Brussels" {
		t.Errorf("made %+v, and with one time left out %+v", made, got)
	}
}

// TestReservePartition: a reservation by the name of a partition is of the nodes that are in
// it, or of so many of these, and one that no node is in is refused by name.
func TestReservePartition(t *testing.T) {
	s := newSite(t, func(c *site.Config) {
		c.Partitions = []site.Partition{{Name: "teaching", Nodes: []string{"n[1-2]"}}, {Name: "empty", Nodes: []string{"n9"}}}
	})
	for _, name := range []string{"n1", "n2", "n3"} {
		s.node(name).sync(nil)
	}
	for name, tc := range map[string]struct {
		r           api.Reservation
		nodes, fail string
	}{
		"all of it":   {api.Reservation{Partition: "teaching"}, "[n1 n2]", ""},
		"one of it":   {api.Reservation{Partition: "teaching", Count: 1}, "[n1]", ""},
		"too many":    {api.Reservation{Partition: "teaching", Count: 3}, "", `reservation "r": wants 3 nodes: 2 match`},
		"nodes too":   {api.Reservation{Partition: "teaching", Nodes: []string{"n3"}}, "", "names nodes and a partition"},
		"none in it":  {api.Reservation{Partition: "empty"}, "", `no node is in a partition "empty"`},
		"no such one": {api.Reservation{Partition: "techaing"}, "", `no node is in a partition "techaing"`},
	} {
		tc.r.Name, tc.r.Start, tc.r.End, tc.r.Maintenance = "r", time.Now().UTC(), time.Now().UTC().Add(time.Hour), true
		made, err := s.Reserve(t.Context(), tc.r)
		if tc.fail != "" {
			if err == nil || !strings.Contains(err.Error(), tc.fail) {
				t.Errorf("%s: %v, want %s", name, err, tc.fail)
			}
			continue
		}
		if err != nil || fmt.Sprint(made.Nodes) != tc.nodes {
			t.Errorf("%s: %+v, %v: want nodes %s", name, made, err, tc.nodes)
		}
	}
}
