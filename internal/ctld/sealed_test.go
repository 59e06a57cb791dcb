package ctld

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/api"
	"gbatch/internal/client"
	"gbatch/internal/ctld/access"
	"gbatch/internal/ctld/jobs"
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/state"
)

func withSecret(values string) *api.SubmitRequest {
	req := hello(1)
	req.Job = bytes.Replace(req.Job, []byte(`"request"`), []byte(`"gbatch":{"retry":3,"secrets":[`+values+`]},"request"`), 1)
	req.Job = bytes.Replace(req.Job, []byte(`"docker"`), []byte(`"scheduling":{"restartable":true},"docker"`), 1)
	return req
}

// say reports a phase with the version of secrets that the node has.
func (n *fakeNode) say(st node.RankStatus) *api.SyncResponse {
	n.held[st.ID] = st
	return n.sync(nil)
}

func secretsOf(r *api.SyncResponse) *api.Secrets {
	for _, o := range r.Desired {
		if o.Secrets != nil {
			return o.Secrets
		}
	}
	return nil
}

// TestSecretsReachTheNode: a job's secrets come to the node that runs it, to
// each try, and again to a node that has lost them; changes come while it runs;
// they are gone with the job, and are in no file and no answer.
func TestSecretsReachTheNode(t *testing.T) {
	const one, two = "hunter2-in-the-document", "hunter3-set-later"
	s := newSite(t, nil)
	n := s.node("n1")
	r := s.submit(withSecret(`{"name":"A","value":"`+one+`"},{"name":"B","value":"b"}`), "")
	got := secretsOf(n.sync(nil))
	if diff := cmp.Diff(&api.Secrets{Version: 1, Values: map[string]string{"A": one, "B": "b"}}, got); diff != "" {
		t.Fatalf("with the order (-want +got):\n%s", diff)
	}
	id := job.RankID{Job: r.Number, Attempt: 1}
	run := node.RankStatus{ID: id, Phase: node.PhaseRunning, Secrets: 1}
	if got := secretsOf(n.say(run)); got != nil {
		t.Errorf("a node that has them got them again: %v", got)
	}
	ans, err := s.SetSecrets(t.Context(), "1", map[string]string{"B": two, "C": "c"})
	if err != nil || ans.Version != 2 || ans.State != job.Running || !strings.Contains(ans.Message, "keep the variables") {
		t.Fatalf("set: %+v %v", ans, err)
	}
	want := &api.Secrets{Version: 2, Values: map[string]string{"A": one, "B": two, "C": "c"}}
	if diff := cmp.Diff(want, secretsOf(n.say(run))); diff != "" {
		t.Errorf("after a change (-want +got):\n%s", diff)
	}
	s.stop()
	s.start()
	n.seen = 0 // the node was restarted, too
	run.Secrets = 0
	if diff := cmp.Diff(want, secretsOf(n.say(run))); diff != "" {
		t.Errorf("after restarts (-want +got):\n%s", diff)
	}
	s.hides(one, two)
	lost := run
	lost.Phase, lost.Exit = node.PhaseEnded, &node.Exit{Code: 255, Reason: job.NodeFail, StartedMS: 1, EndedMS: 2}
	if diff := cmp.Diff(want, secretsOf(n.say(lost))); diff != "" {
		// The next try may need a moment.
		if diff = cmp.Diff(want, secretsOf(n.sync(nil))); diff != "" {
			t.Errorf("to the next try (-want +got):\n%s", diff)
		}
	}
	if _, err := s.Action(t.Context(), "cancel", &api.ActionRequest{IDs: []string{"1"}}); err != nil {
		t.Fatal(err)
	}
	n.say(node.RankStatus{ID: job.RankID{Job: r.Number, Attempt: 2}, Phase: node.PhaseEnded, Exit: &node.Exit{Code: 137, Signal: 9, Reason: job.ByUser, EndedMS: 3}})
	if d := s.job("1"); d.State != job.Cancelled {
		t.Fatalf("the job is %s", d.State)
	}
	if _, ok, err := s.server.store.Get(state.Record{Kind: state.KindSecret, Job: r.Number}); ok || err != nil {
		t.Errorf("its secrets are still stored (%v)", err)
	}
	if _, err := s.SetSecrets(t.Context(), "1", map[string]string{"B": two}); !client.IsCode(err, api.CodeConflict) {
		t.Errorf("secrets of a job that has ended: %v", err)
	}
	s.hides(one, two)
}

// hides looks for texts in what clients are shown and in all files.
func (s *testSite) hides(texts ...string) {
	s.t.Helper()
	d := s.job("1")
	shown := fmt.Sprintf("%+v %+v %+v", d, *d.Spec, *d.Spec.Gbatch)
	for _, text := range texts {
		if strings.Contains(shown, text) {
			s.t.Errorf("%q is in the job's details", text)
		}
	}
	err := filepath.WalkDir(s.cfg.Dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return nil // the store removes files of its own
		}
		data, _ := os.ReadFile(path)
		for _, text := range texts {
			if bytes.Contains(data, []byte(text)) {
				s.t.Errorf("%q is in %s", text, path)
			}
		}
		return nil
	})
	if err != nil {
		s.t.Error(err)
	}
}

// TestSecretsRefused: what cannot be taken is named, never quoted.
func TestSecretsRefused(t *testing.T) {
	s := newSite(t, nil)
	if _, err := s.Submit(t.Context(), withSecret(`"A",{"name":"B","value":"hunter2"}`), ""); !client.IsCode(err, api.CodeInvalidJob) ||
		!strings.Contains(err.Error(), "secret A has no value") || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("a secret without a value: %v", err)
	}
	s.submit(withSecret(`{"name":"A","value":"a"}`), "")
	for what, tc := range map[string]struct {
		values map[string]string
		want   string
	}{
		"nothing": {nil, "no secret was given"},
		"name":    {map[string]string{"a b": "hunter2"}, "a secret's name has"},
		"empty":   {map[string]string{"A": ""}, "secret A: its value must not be empty"},
		"zero":    {map[string]string{"A": "hunter2\x00"}, "secret A: its value must not contain a zero byte"},
	} {
		_, err := s.SetSecrets(t.Context(), "1", tc.values)
		if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", what, err)
		}
	}
	ctx := access.WithCaller(t.Context(), access.Identity{User: "mallory", Role: access.RoleAdmin}, "")
	actions := &jobs.Actions{Loop: s.server.loop, Jobs: s.server.jobs, Rights: s.server.rights}
	if _, err := actions.SetSecrets(ctx, &jobs.SecretsInput{ID: "1", Body: api.SecretsRequest{Values: map[string]string{"A": "x"}}}); !client.IsCode(err, api.CodeDenied) {
		t.Errorf("somebody else: %v", err)
	}
	n := s.node("n1")
	s.submit(hello(1), "")
	n.sync(nil)
	if _, err := s.SetSecrets(t.Context(), "2", map[string]string{"A": "x"}); !client.IsCode(err, api.CodeConflict) || !strings.Contains(err.Error(), "submitted without secrets") {
		t.Errorf("a job that runs without: %v", err)
	}
}
