package submit

import (
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"

	"gbatch/internal/api"
	"gbatch/internal/cli/clitest"
	"gbatch/internal/cli/exit"
	"gbatch/internal/job"
)

// TestUnknownOutcome: where a submission went out and no answer came, its key is told, and
// the same command with it says that the job is there. Where nothing went out, a refusal came, or
// only controllers have answered that do not lead, there is nothing to ask.
func TestUnknownOutcome(t *testing.T) {
	const file = "type: task\nimage: debian\ncommands: [env]\n"
	var mu sync.Mutex // held while the controller answers; of what follows
	taken := map[string]bool{}
	deaf := true
	fake := &clitest.Fake{Submit: func(_ *api.SubmitRequest, key string) (*api.SubmitResponse, *api.Error) {
		defer func() { taken[key] = true }()
		return &api.SubmitResponse{Number: 12, State: job.Queued, Repeated: taken[key]}, nil
	}}
	b := clitest.Start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if !deaf {
			fake.ServeHTTP(w, r)
			return
		}
		taken[r.Header.Get(api.HeaderIdempotencyKey)] = true
		panic(http.ErrAbortHandler) // it took the job, and its answer is lost
	}))
	submit := func(key string) error {
		b.App.In = strings.NewReader(file)
		return (&Submit{Files: []string{"-"}, flags: flags{IdempotencyKey: key}}).Run(t.Context(), b.App)
	}
	err := submit("")
	if err == nil || exit.Code(err) != exit.Unreachable {
		t.Fatalf("without an answer: %v", err)
	}
	found := regexp.MustCompile(`whether it was submitted is not known. The same command with --idempotency-key ([A-Z2-7]{26}) says so`).FindStringSubmatch(err.Error())
	mu.Lock()
	if found == nil || !taken[found[1]] {
		t.Fatalf("without an answer: %v; the controller has %v", err, taken)
	}
	deaf = false
	mu.Unlock()
	if err := submit(found[1]); err != nil || strings.TrimSpace(b.Out.String()) != "12" {
		t.Errorf("asked again: %v, %q", err, b.Out.String())
	}
	mu.Lock()
	if len(taken) != 1 {
		t.Errorf("the controller has %v", taken)
	}
	fake.Submit = func(*api.SubmitRequest, string) (*api.SubmitResponse, *api.Error) {
		return nil, api.Errorf(api.CodeBadRequest, "no")
	}
	mu.Unlock()
	if err := submit(""); err == nil || strings.Contains(err.Error(), "idempotency") {
		t.Errorf("refused: %v", err)
	}
	mu.Lock()
	fake.Submit = func(*api.SubmitRequest, string) (*api.SubmitResponse, *api.Error) {
		return nil, api.Errorf(api.CodeElsewhere, "another controller leads")
	}
	mu.Unlock()
	if err := submit(""); err == nil || strings.Contains(err.Error(), "idempotency") {
		t.Errorf("asked of one that does not lead: %v", err)
	}
	b = clitest.Start(t, nil)
	if err := submit(""); err == nil || strings.Contains(err.Error(), "idempotency") {
		t.Errorf("with no controller: %v", err)
	}
}
