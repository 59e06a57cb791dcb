package ctld

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/api"
	"gbatch/internal/client"
	"gbatch/internal/ctld/site"
	"gbatch/internal/job"
	"gbatch/internal/node"
)

// array is a job with "gbatch" as given.
func array(gbatch string) *api.SubmitRequest {
	req := hello(1)
	req.Job = bytes.Replace(req.Job, []byte(`"request"`), []byte(`"gbatch":`+gbatch+`,"request"`), 1)
	return req
}

// rows is a list as people see it.
func (s *testSite) rows(f client.JobFilter) string {
	s.t.Helper()
	l, err := s.Jobs(s.t.Context(), f)
	if err != nil {
		s.t.Fatal(err)
	}
	var b strings.Builder
	for _, j := range l.Jobs {
		fmt.Fprintf(&b, "%s %s", j.ID, j.State)
		if j.Tasks != nil {
			fmt.Fprintf(&b, " waiting %s%%%d", j.Tasks.Waiting, j.Tasks.Parallelism)
		}
		if j.Reason != "" {
			fmt.Fprintf(&b, " (%s)", j.Reason)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// TestArray follows an array through the API: its tasks are named by its number
// and their index everywhere, also those that are no jobs yet and those that
// have left the table; its node is told what a task needs.
func TestArray(t *testing.T) {
	s := newSite(t, func(c *site.Config) { c.Keep.Count = 1 })
	n := s.node("n1")
	r := s.submit(array(`{"tasks":"5-9%2","secrets":[{"name":"A","value":"hunter2"}]}`), "")
	n.sync(nil)
	if diff := cmp.Diff("1_5 ASSIGNED\n1_6 ASSIGNED\n1 QUEUED waiting 7-9%2 (JobArrayTaskLimit)\n", s.rows(client.JobFilter{})); diff != "" {
		t.Errorf("the list (-want +got):\n%s", diff)
	}
	first := job.RankID{Job: 2, Task: 5, Attempt: 1}
	o := n.runs[first]
	if o == nil || o.UUID == r.UUID || o.Spec.Request.Docker.Image == "" {
		t.Fatalf("the node was told %+v", n.runs)
	}
	if diff := cmp.Diff(&job.ArrayTask{Parent: 1, Index: 5, First: 5, Last: 9, Step: 1, Count: 5}, o.Array); diff != "" {
		t.Errorf("the task is told (-want +got):\n%s", diff)
	}
	if got := secretsOf(func() *api.SyncResponse { n.seen = 0; return n.sync(nil) }()); got == nil || got.Values["A"] != "hunter2" {
		t.Errorf("the task's secrets are %v", got)
	}
	n.report(first, node.PhaseRunning, nil)
	if d := s.job("1_5"); d.Number != 2 || d.Parent != 1 || *d.Task != 5 || d.State != job.Running || d.Spec == nil {
		t.Errorf("task 5 is %+v", d.Job)
	}
	if d := s.job("1_9"); d.State != job.Queued || d.Reason != "JobArrayTaskLimit" || d.Number != 0 {
		t.Errorf("task 9, which is no job yet, is %+v", d.Job)
	}
	for _, id := range []string{"1_4", "1_10", "2_5", "7_1"} {
		if _, err := s.Job(t.Context(), id, client.JobOptions{}); !client.IsCode(err, api.CodeNotFound) {
			t.Errorf("task %s: %v", id, err)
		}
	}
	for _, id := range []string{"1", "1_9"} {
		if e, err := s.Explain(t.Context(), id); err != nil || len(e.Reasons) != 1 || e.Reasons[0].Code != "JobArrayTaskLimit" {
			t.Errorf("%s is explained as %+v, %v", id, e, err)
		}
		if _, err := s.Log(t.Context(), id, client.LogOptions{}); !client.IsCode(err, api.CodeConflict) {
			t.Errorf("the log of %s: %v", id, err)
		}
	}
	var did []string
	for _, r := range s.act("cancel", "1_[7,8]", "1_6", "1_77", "99_1") {
		text := r.ID + " " + string(r.Before) + " " + string(r.After) + " " + r.Message
		if r.Error != nil {
			text = r.ID + " " + r.Error.Message
		}
		did = append(did, text)
	}
	if diff := cmp.Diff([]string{"1_[7,8] RUNNING RUNNING 2 cancelled", "1_6 ASSIGNED ASSIGNED is being cancelled", "1_77 job 1 has no task 77", "99_1 there is no job 99"}, did); diff != "" {
		t.Errorf("cancelled (-want +got):\n%s", diff)
	}
	s.stop()
	s.start()
	n.sync(nil)
	n.report(job.RankID{Job: 3, Task: 6, Attempt: 1}, node.PhaseEnded, &node.Exit{Code: 143, Signal: 15, Reason: job.Signal, EndedMS: 2})
	n.report(first, node.PhaseEnded, &node.Exit{Code: 3, Reason: job.ExitCode, StartedMS: 1, EndedMS: 2})
	last := job.RankID{Job: 4, Task: 9, Attempt: 1}
	if n.runs[last] == nil {
		t.Fatalf("the last task is not there: %v", n.runs)
	}
	d := s.job("1")
	want := &api.TaskSets{Indexes: "5-9", Parallelism: 2, Failed: "5", Cancelled: "6-8", NumActive: 1, NumFailed: 1, NumCancelled: 3}
	if diff := cmp.Diff(want, d.Tasks); diff != "" || d.State != job.Running {
		t.Errorf("the array is %s (-want +got):\n%s", d.State, diff)
	}
	n.report(last, node.PhaseEnded, &node.Exit{StartedMS: 1, EndedMS: 2})
	if d := s.job("1"); d.State != job.Failed || d.Reason != string(job.FailedIndexes) || !strings.Contains(d.ReasonText, "5: exit code 3") {
		t.Errorf("the array is %s %s: %s", d.State, d.Reason, d.ReasonText)
	}
	s.submit(hello(1), "")
	s.act("cancel", "5")
	s.stop()
	s.start()
	for deadline := time.Now().Add(10 * time.Second); strings.Contains(s.rows(client.JobFilter{All: true}), "1_5") && time.Now().Before(deadline); {
		s.stop() // the first turn of a controller forgets what is not to be kept
		s.start()
	}
	if d := s.job("1_5"); d.State != job.Failed || *d.ExitCode != 3 || d.Number != 2 {
		t.Errorf("task 5 in history is %+v", d.Job)
	}
	if d := s.job("1_7"); d.State != job.Cancelled {
		t.Errorf("task 7, which never was a job, is in history %+v", d.Job)
	}
	want = &api.TaskSets{Indexes: "5-9", Parallelism: 2, Succeeded: "9", Failed: "5", Cancelled: "6-8", NumSucceeded: 1, NumFailed: 1, NumCancelled: 3}
	if diff := cmp.Diff(want, s.job("1").Tasks); diff != "" {
		t.Errorf("the array in history (-want +got):\n%s", diff)
	}
}

// TestDocumentOnce: a node is sent what jobs share once, and not what it says it has; one of an
// older version has it in each order.
func TestDocumentOnce(t *testing.T) {
	s := newSite(t, nil)
	n := s.node("n1")
	s.submit(array(`{"tasks":"1-3"}`), "")
	s.submit(hello(1), "")
	n.sync(nil)
	var names []string
	for what, tc := range map[string]struct {
		has                func() []string
		documents, inOrder int
	}{
		"of none":          {func() []string { return []string{} }, 2, 0},
		"of one":           {func() []string { return names[:1] }, 1, 0},
		"of both":          {func() []string { return names }, 0, 0},
		"an older version": {func() []string { return nil }, 0, 4},
	} {
		sync := func(has []string) *api.SyncResponse {
			resp, err := s.NodeSync(t.Context(), "n1", &api.SyncRequest{Instance: "i-n1", Boot: "b", InventoryHash: "h", Records: n.records, Documents: has})
			if err != nil {
				t.Fatal(err)
			}
			return resp
		}
		if names = nil; tc.inOrder == 0 {
			for _, d := range sync([]string{}).Documents {
				names = append(names, d.Name)
			}
			slices.Sort(names)
		}
		resp := sync(tc.has())
		inOrder := 0
		for _, o := range resp.Desired {
			if o.Run.Spec.Request.Docker.Image != "" {
				inOrder++
			} else if !slices.Contains(names, o.Run.Document) {
				t.Errorf("node that knows %s: order %s names %q of %q", what, o.ID, o.Run.Document, names)
			}
		}
		if len(resp.Desired) != 4 || len(resp.Documents) != tc.documents || inOrder != tc.inOrder {
			t.Errorf("node that knows %s: %d orders, %d documents, %d in orders", what, len(resp.Desired), len(resp.Documents), inOrder)
		}
	}
}

// TestArraysByFilter: what waits of an array can be cancelled without what runs.
func TestArraysByFilter(t *testing.T) {
	s := newSite(t, nil)
	n := s.node("n1")
	s.submit(array(`{"tasks":"0-9%2"}`), "")
	n.sync(nil)
	r, err := s.Action(t.Context(), "cancel", &api.ActionRequest{State: "queued"})
	if err != nil || r.Matched != 1 || r.Results[0].Message != "8 cancelled" {
		t.Fatalf("cancelled %+v, %v", r, err)
	}
	if diff := cmp.Diff("1_0 ASSIGNED\n1_1 ASSIGNED\n", s.rows(client.JobFilter{})); diff != "" {
		t.Errorf("the list (-want +got):\n%s", diff)
	}
}

// TestArrayImage: a node is told the image of the first task that began with each
// later one, also by a controller that was started since.
func TestArrayImage(t *testing.T) {
	s := newSite(t, nil)
	n := s.node("n1")
	s.submit(array(`{"tasks":"0-2%1"}`), "")
	n.sync(nil)
	first, second := job.RankID{Job: 2, Task: 0, Attempt: 1}, job.RankID{Job: 3, Task: 1, Attempt: 1}
	digest := "sha256:" + strings.Repeat("1", 64)
	if o := n.runs[first]; o == nil || o.Digest != "" {
		t.Fatalf("the first task's order is %+v", o)
	}
	for _, image := range []string{"v2", digest + "0", digest} { // what is no digest goes to no other node
		n.held[first] = node.RankStatus{ID: first, UUID: n.held[first].UUID, Phase: node.PhaseRunning, Image: image}
		n.sync(nil)
	}
	s.stop()
	s.start()
	n.sync(nil)
	n.report(first, node.PhaseEnded, &node.Exit{StartedMS: 1, EndedMS: 2})
	waitFor(t, "the second task is ordered", func() bool {
		n.sync(nil)
		return n.runs[second] != nil
	})
	if o := n.runs[second]; o.Digest != digest {
		t.Errorf("the second task's order is %+v, want digest %s", o, digest)
	}
}
