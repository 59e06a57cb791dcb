package webhook

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/ctld/mail"
	"gbatch/internal/ctld/site"
	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/sched"
)

func TestMessage(t *testing.T) {
	j := &state.Job{Number: 12, Name: "<!channel>", State: job.Failed, Reason: job.OOM, Text: "killed & gone", Owner: &state.Owner{User: "ann", Project: "vision"}}
	n := moved{Change: mail.Change{From: job.Running, To: job.Failed}, AtMS: 1772355600000}
	got := string(message("slack", "end", n, j))
	if diff := cmp.Diff(`{"text":"Job 12 (\u0026lt;!channel\u0026gt;) of ann, project vision, is FAILED OOM: killed \u0026amp; gone"}`, got); diff != "" {
		t.Errorf("for a chat (-want +got):\n%s", diff)
	}
	j.Name = "train"
	want := `{"type":"job.end","timestamp":"2026-03-01T09:00:00Z","data":{"id":"12","number":12,"uuid":"` + j.Identity() +
		`","name":"train","user":"ann","project":"vision","from":"RUNNING","state":"FAILED","reason":"OOM","text":"killed \u0026 gone"}}`
	if diff := cmp.Diff(want, string(message("json", "end", n, j))); diff != "" {
		t.Errorf("as JSON (-want +got):\n%s", diff)
	}
	j.Request = &state.Request{Limit: 3600 * sched.Second}
	n.Change = mail.Change{From: job.Running, To: job.Running, Percent: 80}
	want = `{"type":"job.limit","timestamp":"2026-03-01T09:00:00Z","data":{"id":"12","number":12,"uuid":"` + j.Identity() +
		`","name":"train","user":"ann","project":"vision","from":"RUNNING","state":"RUNNING","percent":80}}`
	if diff := cmp.Diff(want, string(message("json", "limit", n, j))); diff != "" {
		t.Errorf("of a part of the time limit (-want +got):\n%s", diff)
	}
}

// TestWords: each change is what people can be told of, and no other.
func TestWords(t *testing.T) {
	for name, tc := range map[string]struct {
		change mail.Change
		reason job.Reason
		want   []string
	}{
		"begins":          {mail.Change{From: job.Starting, To: job.Running}, "", []string{"begin"}},
		"a part is used":  {mail.Change{From: job.Running, To: job.Running, Percent: 80}, "", []string{"limit-80"}},
		"while it waits":  {mail.Change{From: job.Queued, To: job.Queued, Percent: 50}, "", []string{"limit-50"}},
		"all is used":     {mail.Change{From: job.Running, To: job.Failed}, job.MaxRuntime, []string{"end", "fail", "limit"}},
		"fails":           {mail.Change{From: job.Running, To: job.Failed}, job.ExitCode, []string{"end", "fail"}},
		"ends":            {mail.Change{From: job.Running, To: job.Finished}, "", []string{"end"}},
		"another goes on": {mail.Change{From: job.Halting, To: job.Halted}, "", nil},
		"is queued again": {mail.Change{From: job.Running, To: job.Queued}, "", []string{"requeue"}},
		"is submitted":    {mail.Change{To: job.Queued}, "", nil},
	} {
		j := &state.Job{State: tc.change.To, Reason: tc.reason, Next: 13, Request: &state.Request{Limit: sched.Second}}
		event, _ := tc.change.What(j)
		if diff := cmp.Diff(tc.want, words(moved{Change: tc.change}, event, j)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestSign holds the example of the convention's own documents.
func TestSign(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	secret, err := secretOf(&site.Webhook{SecretFile: file})
	if err != nil {
		t.Fatal(err)
	}
	h := http.Header{}
	sign(h, stamp{"msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0)}, []byte(`{"test": 2432232314}`), secret)
	if got, want := h.Get("Webhook-Signature"), "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; got != want {
		t.Errorf("signature %s, want %s", got, want)
	}
}

func TestWants(t *testing.T) {
	for name, tc := range map[string]struct {
		hook site.Webhook
		want bool
	}{
		"end unless said": {site.Webhook{}, true},
		"only runs":       {site.Webhook{On: []string{"run"}}, false},
		"its project":     {site.Webhook{Projects: []string{"vision"}, Users: []string{"ann"}}, true},
		"another user":    {site.Webhook{Users: []string{"bob"}}, false},
		"another project": {site.Webhook{Projects: []string{"other"}}, false},
	} {
		if got := tc.hook.Wants("end", "vision", "ann"); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
