package e2e

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// service is what a site tells of jobs.
type service struct {
	t      *testing.T
	secret string

	mu   sync.Mutex
	down bool
	ids  map[string]string // of each message, by what it says
	hits int               // refused ones too
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hits++
	if s.down {
		http.Error(w, "later", http.StatusServiceUnavailable)
		return
	}
	text, _ := io.ReadAll(r.Body)
	id := r.Header.Get("Webhook-Id")
	mac := hmac.New(sha256.New, []byte(s.secret))
	fmt.Fprintf(mac, "%s.%s.%s", id, r.Header.Get("Webhook-Timestamp"), text)
	if want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)); s.secret != "" && r.Header.Get("Webhook-Signature") != want {
		s.t.Errorf("signature %q, want %q", r.Header.Get("Webhook-Signature"), want)
	}
	var m struct {
		Type string
		Text string
		Data struct{ Name, State, Reason string }
	}
	if err := json.Unmarshal(text, &m); err != nil {
		s.t.Errorf("%s: %v", text, err)
	}
	what := strings.TrimSpace(fmt.Sprintf("%s %s %s %s%s", m.Type, m.Data.Name, m.Data.State, m.Data.Reason, m.Text))
	if was, again := s.ids[what]; again && was != id {
		s.t.Errorf("%s came as %s and %s", what, was, id)
	}
	s.ids[what] = id
}

func (s *service) set(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = down
}

func (s *service) has(n int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.ids) >= n
}

func (s *service) asked() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hits > 0
}

// TestWebhooks: services of the site hear of all that they want to hear of, signed,
// also of what happened while they were down and the controller was killed.
func TestWebhooks(t *testing.T) {
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	if err := os.WriteFile(secret, []byte("whsec_"+base64.StdEncoding.EncodeToString([]byte("hidden-horse"))+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ops := &service{t: t, secret: "hidden-horse", down: true, ids: map[string]string{}}
	chat := &service{t: t, ids: map[string]string{}}
	opsAt, chatAt := httptest.NewServer(ops), httptest.NewServer(chat)
	defer opsAt.Close()
	defer chatAt.Close()
	s := newSite(t, siteOptions{ctldConfig: fmt.Sprintf(`webhooks:
  - {name: ops, url: %q, secretFile: %s, on: [queue, run, end]}
  - {name: chat, url: %q, format: slack}
  - {name: elsewhere, url: "http://127.0.0.1:9/none", projects: [other]}
`, opsAt.URL, secret, chatAt.URL)})
	first := s.submit(doc{name: "one", command: sh("exit 3")})
	s.wait(first)
	eventually(t, "the service was asked", ops.asked)
	eventually(t, "the other service is not held up", func() bool { return chat.has(1) })
	s.ctld.kill()
	s.ctld.cmd = nil
	s.ctld.start()
	s.waitNodes("up", 1)
	second := s.submit(doc{name: "<two>", command: sh("true")})
	s.wait(second)
	ops.set(false)
	eventually(t, "all messages have come", func() bool { return ops.has(6) && chat.has(2) })
	keys := func(s *service) map[string]bool {
		out := map[string]bool{}
		for what := range s.ids {
			out[what] = true
		}
		return out
	}
	ops.mu.Lock()
	defer ops.mu.Unlock()
	if diff := cmp.Diff(map[string]bool{
		"job.queue one QUEUED": true, "job.run one RUNNING": true, "job.end one FAILED EXIT_CODE": true,
		"job.queue <two> QUEUED": true, "job.run <two> RUNNING": true, "job.end <two> FINISHED": true,
	}, keys(ops)); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	chat.mu.Lock()
	defer chat.mu.Unlock()
	for what := range chat.ids {
		if !strings.HasPrefix(what, "Job 1 (one) of root, project default, is FAILED EXIT_CODE") && !strings.HasPrefix(what, "Job 2 (&lt;two&gt;) of root, project default, is FINISHED") {
			t.Errorf("in the chat: %q", what)
		}
	}
}
