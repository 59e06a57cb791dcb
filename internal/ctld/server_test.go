package ctld

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/api/apitest"
	"gbatch/internal/client"
	"gbatch/internal/ctld/access"
	"gbatch/internal/ctld/site"
	"gbatch/internal/job"
	"gbatch/internal/node"
)

// testSite is a controller in a directory, which may be stopped and started.
type testSite struct {
	t      *testing.T
	cfg    site.Config
	read   func() (site.Config, error) // nil: gives cfg
	server *Server
	stop   func()
	log    *slog.Logger // nil: none
	wires  sync.Map     // connections of callers, by certificate, while it runs
	*client.Client
}

func newSite(t *testing.T, edit func(*site.Config)) *testSite {
	t.Helper()
	cfg := site.Default()
	cfg.Dir, cfg.Socket, cfg.Listen = t.TempDir(), "", "127.0.0.1:0"
	cfg.ReserveMiB, cfg.Logs.FreeMiB = 0, 0 // whatever disk the tests have
	if edit != nil {
		edit(&cfg)
	}
	s := &testSite{t: t, cfg: cfg}
	s.start()
	t.Cleanup(func() { s.stop() })
	return s
}

// description is that of the API, which all sites here have alike.
var description apitest.Description

func (s *testSite) start() {
	s.t.Helper()
	read := s.read
	if read == nil {
		read = func() (site.Config, error) { return s.cfg, nil }
	}
	log := s.log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	server, err := Open(read, log)
	if err != nil {
		s.t.Fatal(err)
	}
	s.run(server)
}

// run has a server that is open answer until stop.
func (s *testSite) run(server *Server) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.Run(ctx) }() // ended by stop
	s.server = server
	s.Client = &client.Client{Address: server.Addresses()[0]}
	if socket, ok := strings.CutPrefix(s.Client.Address, "unix://"); ok {
		s.Client.Transport = apitest.Socket(socket, &description, func(err error) { s.t.Error(err) })
	}
	s.stop = func() {
		for _, wire := range s.wires.Range {
			wire.(*apitest.Transport).CloseIdleConnections()
		}
		s.wires.Clear()
		cancel()
		if err := errors.Join(<-done, server.Close()); err != nil {
			s.t.Error(err)
		}
		s.stop = func() {}
	}
}

func hello(cpus int) *api.SubmitRequest {
	doc := fmt.Sprintf(`{"name":"hello","request":{"resources":{"gpus":0,"cpus":%d,"cpuMemoryGb":1},"docker":{"image":"busybox:1","command":"true"}}}`, cpus)
	return &api.SubmitRequest{Job: []byte(doc)}
}

// fakeNode speaks for a node and does at once what it is told.
type fakeNode struct {
	name    string
	held    map[job.RankID]node.RankStatus
	seen    uint64
	records string
	hash    string // of the inventory that it has told last
	runs    map[job.RankID]*api.RunOrder
	stops   map[job.RankID]*api.Stop
	s       *testSite
}

func (s *testSite) node(name string) *fakeNode {
	n := &fakeNode{name: name, held: map[job.RankID]node.RankStatus{}, runs: map[job.RankID]*api.RunOrder{}, stops: map[job.RankID]*api.Stop{}, s: s}
	n.sync(&node.Inventory{Hostname: name, Cluster: 1, Bridge: true, Gang: true, CPUs: 8, MemBytes: 32 << 30})
	return n
}

func (n *fakeNode) sync(inv *node.Inventory) *api.SyncResponse {
	n.s.t.Helper()
	if inv != nil {
		n.hash += "h"
	}
	req := &api.SyncRequest{Instance: "i-" + n.name, Boot: "b", InventoryHash: n.hash, Inventory: inv, Seen: n.seen, Records: n.records}
	for _, st := range n.held {
		req.Ranks = append(req.Ranks, st)
	}
	resp, err := n.s.NodeSync(n.s.t.Context(), n.name, req)
	if err != nil {
		n.s.t.Fatal(err)
	}
	n.records = resp.Records
	if resp.Changed {
		n.seen = resp.Version
		clear(n.stops)
		wanted := map[job.RankID]string{}
		for _, o := range resp.Desired {
			wanted[o.ID] = o.UUID
			if o.Run != nil {
				n.runs[o.ID] = o.Run
				n.held[o.ID] = node.RankStatus{ID: o.ID, UUID: o.UUID, Phase: node.PhaseAccepted}
			}
			if o.Stop != nil {
				n.stops[o.ID] = o.Stop
			}
		}
		for id := range n.held {
			if uuid, ok := wanted[id]; !ok || !node.SameJob(uuid, n.held[id].UUID) {
				delete(n.held, id)
			}
		}
	}
	return resp
}

func (n *fakeNode) report(id job.RankID, phase node.Phase, exit *node.Exit) {
	n.held[id] = node.RankStatus{ID: id, UUID: n.held[id].UUID, Phase: phase, Exit: exit}
	n.sync(nil)
}

func (s *testSite) submit(req *api.SubmitRequest, key string) *api.SubmitResponse {
	s.t.Helper()
	r, err := s.Submit(s.t.Context(), req, key)
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

func (s *testSite) job(id string) *api.JobDetail {
	s.t.Helper()
	d, err := s.Job(s.t.Context(), id, client.JobOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	return d
}

func TestJobRunsThroughRestarts(t *testing.T) {
	s := newSite(t, nil)
	n := s.node("n1")
	r := s.submit(hello(2), "")
	if r.Number != 1 || r.State != job.Queued || r.Project != "default" {
		t.Fatalf("submit answered %+v", r)
	}
	n.sync(nil)
	id := job.RankID{Job: 1, Attempt: 1}
	if o := n.runs[id]; o == nil || o.UUID != r.UUID || o.Allocation.CPUs != 2 || o.Spec.Request.Docker.Image == "" {
		t.Fatalf("the node was told %+v", n.runs)
	}
	s.stop()
	s.start()
	if d := s.job("1"); d.State != job.Assigned {
		t.Fatalf("after a restart the job is %s", d.State)
	}
	n.report(id, node.PhaseRunning, nil)
	s.stop()
	s.start()
	n.report(id, node.PhaseEnded, &node.Exit{Code: 3, Reason: job.ExitCode, StartedMS: 1, EndedMS: 2})
	d := s.job(r.UUID[:9])
	if d.State != job.Failed || d.ExitCode == nil || *d.ExitCode != 3 || d.Class != job.Program {
		t.Fatalf("the job ended as %+v", d.Job)
	}
	if len(d.Attempts) != 1 || len(d.Events) < 4 {
		t.Errorf("it has %d attempts and %d events", len(d.Attempts), len(d.Events))
	}
	if len(n.held) != 0 {
		t.Errorf("the node still holds %v", n.held)
	}
}

// TestIDsOfUsers: each user's orders name one range, on every node and after a
// restart, and nobody else's name it.
func TestIDsOfUsers(t *testing.T) {
	s := newSite(t, func(c *site.Config) { c.IDsFrom = 0x40000000 })
	nodes := []*fakeNode{s.node("n1"), s.node("n2")}
	seen := map[string]uint32{}
	for round := range 2 {
		for _, user := range []string{"ann", "bob", "root"} {
			for _, n := range nodes {
				doc := strings.Replace(string(hello(1).Job), `"request":{"resources":{`, `"request":{"resources":{"slaveName":"`+n.name+`",`, 1)
				r, err := s.as(user).Submit(t.Context(), &api.SubmitRequest{Job: []byte(doc)}, "")
				if err != nil {
					t.Fatal(err)
				}
				var o *api.RunOrder
				waitFor(t, "the order", func() bool { n.sync(nil); o = n.runs[job.RankID{Job: r.Number, Attempt: 1}]; return o != nil })
				if seen[user] == 0 {
					seen[user] = o.IDs
				}
				if o.IDs < 0x40000000 || o.IDs >= node.IDsEnd || o.IDs != seen[user] {
					t.Errorf("on %s in round %d, the ids of %s are from %d, and were from %d", n.name, round, user, o.IDs, seen[user])
				}
			}
		}
		s.stop()
		s.cfg.IDsFrom = 0x50000000 // of those who come later
		s.start()
	}
	if seen["ann"] == seen["bob"] || seen["bob"] == seen["root"] || seen["root"] == seen["ann"] {
		t.Errorf("the ids are %v", seen)
	}
}

func TestSubmitIsSafeToRepeat(t *testing.T) {
	s := newSite(t, nil)
	a := s.submit(hello(1), "key")
	s.stop()
	s.start()
	b := s.submit(hello(1), "key")
	if a.Number != b.Number || !b.Repeated {
		t.Errorf("the same key gave jobs %d and %d", a.Number, b.Number)
	}
	if _, err := s.Submit(t.Context(), hello(2), "key"); !client.IsCode(err, api.CodeConflict) {
		t.Errorf("the same key with another document: %v", err)
	}
	if c := s.submit(hello(1), ""); c.Number != a.Number+1 {
		t.Errorf("the next job is %d", c.Number)
	}
}

func TestPasswordIsNowhere(t *testing.T) {
	const password = "hunter2-very-secret"
	s := newSite(t, nil)
	n := s.node("n1")
	req := hello(1)
	req.Job = bytes.Replace(req.Job, []byte("busybox:1"), []byte("bob:"+password+"@reg.example:5000/a/b:1"), 1)
	r := s.submit(req, "")
	n.sync(nil)
	o := n.runs[job.RankID{Job: r.Number, Attempt: 1}]
	if o == nil || o.Registry == nil || o.Registry.Password != password || o.Registry.Username != "bob" {
		t.Fatalf("the node that pulls was told %+v", o)
	}
	ask := api.LaunchRequest{Rank: job.RankID{Job: r.Number, Attempt: 1}, UUID: o.UUID, Login: true}
	if again, err := s.Launch(t.Context(), "n1", &ask); err != nil || again.Registry == nil || *again.Registry != *o.Registry {
		t.Errorf("for the image of a step it was told %+v, %v", again, err)
	}
	if none, err := s.Launch(t.Context(), "n2", &ask); !client.IsCode(err, api.CodeDenied) {
		t.Errorf("a node that does not run the job was told %+v, %v", none, err)
	}
	d := s.job("1")
	if text := fmt.Sprintf("%+v %+v", d, *d.Spec); strings.Contains(text, password) {
		t.Error("the password is in the job's details")
	}
	s.stop()
	err := filepath.WalkDir(s.cfg.Dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if bytes.Contains(data, []byte(password)) {
			t.Errorf("the password is in %s", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestFullDisk(t *testing.T) {
	s := newSite(t, nil)
	s.submit(hello(1), "")
	s.cfg.ReserveMiB = 1 << 40
	if err := s.server.rules.Reload(access.WithCaller(t.Context(), access.Identity{User: "root", Role: access.RoleAdmin, Root: true}, "")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Submit(t.Context(), hello(1), ""); !client.IsCode(err, api.CodeStorageFull) {
		t.Errorf("a submission to a full disk: %v", err)
	}
	if l, err := s.Jobs(t.Context(), client.JobFilter{}); err != nil || len(l.Jobs) != 1 {
		t.Errorf("the queue has %v, %v", l, err)
	}
}

// TestFullDiskSparesJobs: while nothing can be stored nodes keep their leases and
// their jobs, what they say waits, and submissions are refused; with room again
// all goes on by itself.
func TestFullDiskSparesJobs(t *testing.T) {
	s := newSite(t, nil)
	n := s.node("n1")
	s.submit(hello(1), "")
	n.until(1)
	id := job.RankID{Job: 1, Attempt: 1}
	n.report(id, node.PhaseRunning, nil)
	// It is not told of yet, and its user's ids have to be stored before.
	if _, err := s.user("ann").Submit(t.Context(), hello(1), ""); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); s.server.loop.View().Job(2).State != job.Assigned; {
		if time.Now().After(end) {
			t.Fatal("job 2 is not assigned")
		}
	}
	reserve := s.cfg.ReserveMiB
	s.stop()
	s.cfg.ReserveMiB = 1 << 40
	s.start()
	seen := s.server.loop.View().Node("n1").LastSeen
	n.report(id, node.PhaseEnded, &node.Exit{})
	if resp := n.sync(nil); resp.LeaseMS == 0 {
		t.Error("the node gets no lease")
	}
	v := s.server.loop.View()
	if got := v.Node("n1").LastSeen; got <= seen {
		t.Errorf("the node was heard at %d, before it was %d", got, seen)
	}
	if got := v.Job(1).State; got != job.Running {
		t.Errorf("job 1 is %s though that cannot be stored", got)
	}
	if _, err := s.Submit(t.Context(), hello(1), ""); !client.IsCode(err, api.CodeStorageFull) {
		t.Errorf("a submission to a full disk: %v", err)
	}
	s.stop()
	s.cfg.ReserveMiB = reserve
	s.start()
	n.sync(nil)
	if got := s.server.loop.View().Job(1).State; got != job.Finished {
		t.Errorf("job 1 is %s, want its end to be heard when there is room", got)
	}
	for end := time.Now().Add(time.Minute); n.runs[job.RankID{Job: 2, Attempt: 1}] == nil; n.sync(nil) {
		if time.Now().After(end) {
			t.Fatal("the node is not told of job 2")
		}
	}
}

func TestLogIsDialledBack(t *testing.T) {
	s := newSite(t, nil)
	s.submit(hello(1), "")
	if _, err := s.Log(t.Context(), "1", client.LogOptions{}); !client.IsCode(err, api.CodeConflict) {
		t.Errorf("the log of a job that waits: %v", err)
	}
	n := s.node("n1")
	n.sync(nil)
	got := make(chan string, 1)
	go func() { // ends with the stream
		body, err := s.Log(t.Context(), "1", client.LogOptions{Follow: true})
		if err != nil {
			got <- err.Error()
			return
		}
		defer body.Close()
		data, err := io.ReadAll(body)
		got <- fmt.Sprintf("%s %v", data, err)
	}()
	var streams []api.StreamRequest
	for deadline := time.Now().Add(time.Minute); len(streams) == 0 && time.Now().Before(deadline); {
		resp, err := s.NodeSync(t.Context(), "n1", &api.SyncRequest{Instance: "i-n1", InventoryHash: "h", Seen: n.seen, WaitMS: 5000})
		if err != nil {
			t.Fatal(err)
		}
		streams = resp.Streams
		n.seen = resp.Version
	}
	if len(streams) != 1 || !streams[0].Follow || streams[0].Rank.Job != 1 {
		t.Fatalf("the node was asked for %+v", streams)
	}
	if err := s.PostStreamAt(t.Context(), streams[0].ID, 0, strings.NewReader("hello there\n")); err != nil {
		t.Fatal(err)
	}
	if text := <-got; text != "hello there\n <nil>" {
		t.Errorf("the client read %q", text)
	}
	if err := s.PostStreamAt(t.Context(), streams[0].ID, 0, strings.NewReader("again")); !client.IsCode(err, api.CodeNotFound) {
		t.Errorf("a second answer to a stream: %v", err)
	}
}

func TestActions(t *testing.T) {
	s := newSite(t, nil)
	for range 3 {
		s.submit(hello(1), "")
	}
	r, err := s.Action(t.Context(), "hold", &api.ActionRequest{IDs: []string{"1", "99", "2"}})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Results) != 3 || r.Results[0].After != job.OnHold || r.Results[1].Error == nil || r.Results[2].After != job.OnHold {
		t.Errorf("hold answered %+v", r.Results)
	}
	explained, err := s.Explain(t.Context(), "2")
	if err != nil {
		t.Fatal(err)
	}
	listed := s.job("2")
	want := api.Reason{Code: "JobHeldUser", Text: "held by root; `gcancel --release 2` lets it go on"}
	if got := (api.Reason{Code: listed.Reason, Text: listed.ReasonText}); got != want || len(explained.Reasons) != 1 || explained.Reasons[0] != want {
		t.Errorf("a held job is listed with %+v and explained by %+v, want %+v", got, explained.Reasons, want)
	}
	r, err = s.Action(t.Context(), "cancel", &api.ActionRequest{State: "queued", Count: true})
	if err != nil || r.Matched != 1 {
		t.Errorf("count answered %+v, %v", r, err)
	}
	if _, err = s.Action(t.Context(), "cancel", &api.ActionRequest{}); !client.IsCode(err, api.CodeBadRequest) {
		t.Errorf("cancel of nothing named: %v", err)
	}
	if _, err = s.Action(t.Context(), "cancel", &api.ActionRequest{User: "root"}); err != nil {
		t.Error(err)
	}
	l, err := s.Jobs(t.Context(), client.JobFilter{All: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range l.Jobs {
		if j.State != job.Cancelled {
			t.Errorf("job %d is %s", j.Number, j.State)
		}
	}
}

// byName and byGroup are lists of people, as the configuration has them.
func byName(names ...string) (out site.Members) {
	for _, n := range names {
		out = append(out, site.Member{User: n})
	}
	return out
}

func byGroup(names ...string) (out site.Members) {
	for _, n := range names {
		out = append(out, site.Member{Group: n})
	}
	return out
}
