package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/client"
	"gbatch/internal/job"
)

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A log that does not end although its job has (the node was lost) holds the
// user for a while only.
func TestFollowLeavesAnEndlessLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		polls := 0
		transport := roundTripper(func(r *http.Request) (*http.Response, error) {
			if strings.HasSuffix(r.URL.Path, "/log") {
				out, in := io.Pipe()
				go io.WriteString(in, "hello\n") // ended by the reader's close
				context.AfterFunc(r.Context(), func() { in.CloseWithError(r.Context().Err()) })
				return &http.Response{StatusCode: 200, Body: out}, nil
			}
			if r.URL.Path == api.PathEvents {
				out, in := io.Pipe()
				go io.WriteString(in, "id: 1\nevent: ping\ndata: {}\n\n") // ended by the reader's close
				context.AfterFunc(r.Context(), func() { in.CloseWithError(r.Context().Err()) })
				return &http.Response{StatusCode: 200, Body: out}, nil
			}
			d := ended(job.Failed, job.NodeFail, nil)
			if polls++; polls == 1 {
				d = at(1, job.Running)
			}
			body, err := json.Marshal(d)
			return &http.Response{StatusCode: 200, Body: io.NopCloser(bytes.NewReader(body))}, err
		})
		var out, errOut bytes.Buffer
		app := &App{Out: &out, Err: &errOut, Now: time.Now, Sleep: client.Sleep,
			Client: &client.Client{Address: "/none", Transport: transport}}
		code := ExitCode(app.followJob(t.Context(), "12"))
		if code != ExitNotProgram || out.String() != "hello\n" || !strings.Contains(errOut.String(), "the log did not end with the job") {
			t.Errorf("exit %d, stdout %q, stderr %q", code, out.String(), errOut.String())
		}
		if waited := time.Since(begun); waited != drain {
			t.Errorf("waited %v, want %v", waited, drain)
		}
	})
}
