package ctld

import (
	"bytes"
	"compress/flate"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/api"
	"gbatch/internal/client"
	"gbatch/internal/ctld/site"
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/transfer/s3test"
)

func packed(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, flate.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(w, text)
	w.Close()
	return b.Bytes()
}

// send sends one piece of a log as a node.
func (s *testSite) send(c *client.Client, node string, p api.LogPiece) api.LogTaken {
	s.t.Helper()
	out, err := c.SendLogs(s.t.Context(), node, &api.LogPieces{Pieces: []api.LogPiece{p}})
	if err != nil {
		s.t.Fatal(err)
	}
	return out.Pieces[0]
}

// copyOf reads a job's log, and says what it is of the copy.
func copyOf(t *testing.T, c *client.Client, id string, o client.LogOptions) (text, source string) {
	t.Helper()
	log, err := c.Log(t.Context(), id, o)
	if err != nil {
		return err.Error(), ""
	}
	defer log.Close()
	b, err := io.ReadAll(log)
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case log.Copied.IsZero():
		return string(b), "node"
	case log.Complete:
		return string(b), "all"
	}
	return string(b), "copy"
}

// TestKeptLog: what a node sends of its ranks is read when the node is gone, by
// those who may read the job's log, over restarts; each project's as it wants.
func TestKeptLog(t *testing.T) {
	s := newSite(t, func(c *site.Config) {
		c.Nodes.Suspect, c.Nodes.Timeout = 1, 3600
		c.Projects = append(c.Projects, site.Project{Name: "quiet", Logs: site.LogsOnNode})
	})
	n := s.node("n1")
	r := s.submit(hello(2), "")
	quiet := hello(2)
	quiet.Project = "quiet"
	s.submit(quiet, "")
	n.sync(nil)
	id, other := job.RankID{Job: 1, Attempt: 1}, job.RankID{Job: 2, Attempt: 1}
	if n.runs[id].Logs == nil || !n.runs[id].Logs.Controller || n.runs[other].Logs != nil {
		t.Fatalf("the node is told to keep logs %+v and %+v", n.runs[id].Logs, n.runs[other].Logs)
	}
	n.report(id, node.PhaseRunning, nil)
	piece := api.LogPiece{Rank: id, UUID: r.UUID, Data: packed(t, "one\ntwo\nthree\n")}
	if got := s.send(s.Client, "n1", piece); got != (api.LogTaken{Offset: 14}) {
		t.Errorf("taken: %+v", got)
	}
	silent := func() {
		t.Helper()
		waitFor(t, "the node is suspect", func() bool { return s.server.loop.View().Node("n1").Suspect })
	}
	silent()
	check := func(when string, want map[client.LogOptions]string, source string) {
		t.Helper()
		for o, text := range want {
			got, from := copyOf(t, s.Client, "1", o)
			if diff := cmp.Diff(text, got); diff != "" || from != source {
				t.Errorf("%s, %+v: from %q, (-want +got):\n%s", when, o, from, diff)
			}
		}
	}
	check("node gone", map[client.LogOptions]string{{}: "one\ntwo\nthree\n", {Offset: 4}: "two\nthree\n", {Tail: 1}: "three\n", {Offset: 100}: "", {Follow: true}: "one\ntwo\nthree\n"}, "copy")
	s.stop()
	s.start()
	if got := s.send(s.Client, "n1", api.LogPiece{Rank: id, UUID: r.UUID, Offset: 8, Data: packed(t, "three\nfour\n"), End: true}); got != (api.LogTaken{Offset: 19, Done: true}) {
		t.Errorf("the rest: %+v", got)
	}
	silent()
	check("after a restart", map[client.LogOptions]string{{}: "one\ntwo\nthree\nfour\n"}, "all")
	if text, _ := copyOf(t, s.as("bob"), "1", client.LogOptions{}); !strings.Contains(text, "belongs to project") {
		t.Errorf("somebody else reads %q", text)
	}
}

// TestHostileLogs: a node writes the logs of ranks that it was given, and nothing
// else, whatever it says.
func TestHostileLogs(t *testing.T) {
	s := newSite(t, nil)
	s.node("n1")
	evil := s.joined("n2")
	if _, err := evil.NodeSync(t.Context(), "n2", evil.hello()); err != nil {
		t.Fatal(err)
	}
	uuids := map[string]string{}
	on := func(name string) job.RankID {
		req := hello(2)
		req.Job = []byte(strings.Replace(string(req.Job), `"cpus":2`, `"slaveName":"`+name+`","cpus":2`, 1))
		r := s.submit(req, "")
		uuids[name] = r.UUID
		return job.RankID{Job: r.Number, Attempt: 1}
	}
	good, bad := on("n1"), on("n2")
	text := packed(t, "x")
	rank := func(change func(*job.RankID)) job.RankID { r := bad; change(&r); return r }
	for _, tc := range []struct {
		name  string
		piece api.LogPiece
		want  string // of the refusal
	}{
		{"another node's rank", api.LogPiece{Rank: good, UUID: uuids["n1"], Data: text}, "was not given rank"},
		{"another node's job", api.LogPiece{Rank: bad, UUID: uuids["n1"], Data: text}, "was not given rank"},
		{"a path", api.LogPiece{Rank: bad, UUID: "../../../../../../../../../etc/passwd", Data: text}, "was not given rank"},
		{"no job", api.LogPiece{Rank: job.RankID{Job: 99, Attempt: 1}, UUID: uuids["n2"], Data: text}, "was not given rank"},
		{"another attempt", api.LogPiece{Rank: rank(func(r *job.RankID) { r.Attempt = 7 }), UUID: uuids["n2"], Data: text}, "was not given rank"},
		{"attempt 0", api.LogPiece{Rank: rank(func(r *job.RankID) { r.Attempt = 0 }), UUID: uuids["n2"], Data: text}, "was not given rank"},
		{"another rank", api.LogPiece{Rank: rank(func(r *job.RankID) { r.Rank = 1 << 31 }), UUID: uuids["n2"], Data: text}, "was not given rank"},
		{"another task", api.LogPiece{Rank: rank(func(r *job.RankID) { r.Task = 3 }), UUID: uuids["n2"], Data: text}, "was not given rank"},
		{"before the beginning", api.LogPiece{Rank: bad, UUID: uuids["n2"], Offset: -1, Data: text}, "has no place in a log"},
		{"behind the end of the world", api.LogPiece{Rank: bad, UUID: uuids["n2"], Offset: 1<<63 - 1, Lost: 1<<63 - 1, Data: text}, "has no place in a log"},
		{"more lost than there was", api.LogPiece{Rank: bad, UUID: uuids["n2"], Offset: 1, Lost: 2, Data: text}, "has no place in a log"},
		{"garbage", api.LogPiece{Rank: bad, UUID: uuids["n2"], Data: []byte("garbage")}, "cannot be unpacked"},
		{"a bomb", api.LogPiece{Rank: bad, UUID: uuids["n2"], Data: packed(t, strings.Repeat("x", 100<<20))}, "has more than"},
		{"its own", api.LogPiece{Rank: bad, UUID: uuids["n2"], Data: text}, ""},
	} {
		got := s.send(evil.Client, "n2", tc.piece)
		if tc.want == "" && got.Refused != "" || !strings.Contains(got.Refused, tc.want) {
			t.Errorf("%s: %+v, want %q", tc.name, got, tc.want)
		}
	}
	if _, err := evil.SendLogs(t.Context(), "n1", &api.LogPieces{}); !client.IsCode(err, api.CodeDenied) {
		t.Errorf("it speaks for another node: %v", err)
	}
	if _, err := evil.SendLogs(t.Context(), "n2", &api.LogPieces{Pieces: make([]api.LogPiece, api.MaxLogPieces+1)}); !client.IsCode(err, api.CodeBadRequest) {
		t.Errorf("it sends too much: %v", err)
	}
	var made []string
	err := filepath.WalkDir(s.cfg.LogsPath(), func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			made = append(made, filepath.Base(path))
		}
		return err
	})
	if diff := cmp.Diff([]string{"00000000000000000000.log", "00000000000000000000.sum", "times"}, made); diff != "" || err != nil {
		t.Errorf("files (-want +got):\n%s%v", diff, err)
	}
}

// newArchivingSite keeps logs in a bucket.
func newArchivingSite(t *testing.T, edit func(*site.Config)) (*s3test.Server, *testSite) {
	t.Helper()
	s3 := s3test.New(t)
	keys := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(keys, []byte(s3test.AccessKey+" "+s3test.SecretKey), 0o600); err != nil {
		t.Fatal(err)
	}
	return s3, newSite(t, func(c *site.Config) {
		c.Logs.Keep, c.Logs.S3 = site.LogsS3, &site.LogBucket{URI: "s3://lab/logs", Endpoint: s3.URL, KeyFile: keys}
		edit(c)
	})
}

// TestArchivedLog: a complete log goes to the site's bucket, and is read from there
// when neither its node nor the controller has it; gqueue show knows where it is.
func TestArchivedLog(t *testing.T) {
	s3, s := newArchivingSite(t, func(c *site.Config) { c.Nodes.Suspect, c.Nodes.Timeout = 1, 3600 })
	n := s.node("n1")
	r := s.submit(hello(2), "")
	n.sync(nil)
	id := job.RankID{Job: 1, Attempt: 1}
	n.report(id, node.PhaseRunning, nil)
	if d := s.job("1"); d.Log != nil {
		t.Errorf("a copy before anything was sent: %+v", d.Log)
	}
	if got := s.send(s.Client, "n1", api.LogPiece{Rank: id, UUID: r.UUID, Data: packed(t, "one\ntwo\n"), End: true}); !got.Done {
		t.Fatalf("taken: %+v", got)
	}
	waitFor(t, "the log is archived", func() bool { l := s.job("1").Log; return l != nil && l.Archived })
	if l := s.job("1").Log; l.Ranks != 1 || l.Bytes != 8 || !l.Complete {
		t.Errorf("shown as %+v", l)
	}
	s.stop()
	if err := os.RemoveAll(s.cfg.LogsPath()); err != nil {
		t.Fatal(err)
	}
	s.start()
	waitFor(t, "the node is suspect", func() bool { return s.server.loop.View().Node("n1").Suspect })
	for range 2 { // the second one is here again
		if text, from := copyOf(t, s.Client, "1", client.LogOptions{Tail: 1}); text != "two\n" || from != "all" {
			t.Errorf("from %q: %q", from, text)
		}
	}
	if got := s3.Requests("GET /lab/logs/"); len(got) > 2 {
		t.Errorf("the archive is asked each time: %v", got)
	}
}

// TestLogOfLostNode: of a log that was not copied it is said at once that it is on a node
// which is lost, or gone with one, and one that has no output is empty. A copy elsewhere is found
// while the node is not yet known to be silent.
func TestLogOfLostNode(t *testing.T) {
	_, s := newArchivingSite(t, func(c *site.Config) { c.Nodes.Suspect, c.Nodes.Timeout = 3600, 7200 })
	n := s.node("n1")
	r := s.submit(hello(2), "")
	s.submit(hello(2), "")
	s.submit(hello(2), "")
	n.sync(nil)
	id := job.RankID{Job: 1, Attempt: 1}
	n.report(id, node.PhaseRunning, nil)
	n.report(job.RankID{Job: 3, Attempt: 1}, node.PhaseEnded, &node.Exit{StartedMS: 1, EndedMS: 2, Silent: true})
	if got := s.send(s.Client, "n1", api.LogPiece{Rank: id, UUID: r.UUID, Data: packed(t, "one\n"), End: true}); !got.Done {
		t.Fatalf("taken: %+v", got)
	}
	waitFor(t, "the log is archived", func() bool { l := s.job("1").Log; return l != nil && l.Archived })
	s.stop()
	if err := os.RemoveAll(s.cfg.LogsPath()); err != nil {
		t.Fatal(err)
	}
	s.start()
	if text, from := copyOf(t, s.Client, "1", client.LogOptions{}); text != "one\n" || from != "all" {
		t.Errorf("from %q: %q", from, text)
	}
	s.stop()
	s.cfg.Nodes.Suspect, s.cfg.Nodes.Timeout = 1, 2
	s.start()
	waitFor(t, "the node is lost", func() bool { return s.server.loop.View().Node("n1").Lost })
	if text, _ := copyOf(t, s.Client, "2", client.LogOptions{}); !strings.Contains(text, "node n1 is lost, and the log is there") {
		t.Errorf("of a lost node: %q", text)
	}
	if text, _ := copyOf(t, s.Client, "3", client.LogOptions{Follow: true}); text != "" {
		t.Errorf("without output: %q", text)
	}
	if err := s.Client.Forget(t.Context(), "n1", true); err != nil {
		t.Fatal(err)
	}
	if text, _ := copyOf(t, s.Client, "2", client.LogOptions{}); !strings.Contains(text, "node n1 is gone, and no copy of the log was kept") {
		t.Errorf("of a node that is gone: %q", text)
	}
}
