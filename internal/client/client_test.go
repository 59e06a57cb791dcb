package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/api"
	"gbatch/internal/job"
)

// serve answers on a unix socket, as gctld does for local users.
//
// Requests are handled one at a time: one that its client gave up may still be in
// work when the next comes by another connection.
func serve(t *testing.T, h http.HandlerFunc) *Client {
	t.Helper()
	var mu sync.Mutex
	oneAtATime := func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		h(w, r)
	}
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	srv := &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(oneAtATime)}}
	srv.Start()
	t.Cleanup(srv.Close)
	c := &Client{Address: "unix://" + socket, Token: "t0k", UserAgent: "test/1"}
	t.Cleanup(c.Close)
	return c
}

// noSleep counts pauses instead of making them.
func noSleep(n *int) func(context.Context, time.Duration) error {
	return func(ctx context.Context, _ time.Duration) error { *n++; return ctx.Err() }
}

func reply(t *testing.T, w http.ResponseWriter, status int, body any) {
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(body); err != nil {
		t.Error(err)
	}
}

func TestRequests(t *testing.T) {
	tests := map[string]struct {
		call func(context.Context, *Client) error
		want string // method, URI and body as the server saw them
	}{
		"submit": {
			call: func(ctx context.Context, c *Client) error {
				_, err := c.Submit(ctx, &api.SubmitRequest{Job: json.RawMessage(`{"a":1}`), Hold: true}, "k1")
				return err
			},
			want: `POST /v1/jobs key=k1 {"job":{"a":1},"hold":true}`,
		},
		"jobs-filtered": {
			call: func(ctx context.Context, c *Client) error {
				_, err := c.Jobs(ctx, JobFilter{States: []job.State{job.Running, job.Queued}, User: "ann", Project: "p q", Name: "n", Node: "gpu1", Cluster: 3, All: true, Limit: 5})
				return err
			},
			want: `GET /v1/jobs?all=true&cluster=3&limit=5&name=n&node=gpu1&project=p+q&state=RUNNING%2CQUEUED&user=ann`,
		},
		"jobs-all": {
			call: func(ctx context.Context, c *Client) error { _, err := c.Jobs(ctx, JobFilter{}); return err },
			want: `GET /v1/jobs`,
		},
		"job": {
			call: func(ctx context.Context, c *Client) error { _, err := c.Job(ctx, "12", JobOptions{}); return err },
			want: `GET /v1/jobs/12`,
		},
		"job-poll": {
			call: func(ctx context.Context, c *Client) error {
				_, err := c.Job(ctx, "12", JobOptions{Wait: 20 * time.Second, Version: 7})
				return err
			},
			want: `GET /v1/jobs/12?version=7&wait=20`,
		},
		"job-odd-id": {
			call: func(ctx context.Context, c *Client) error {
				_, err := c.Job(ctx, "../status", JobOptions{})
				return err
			},
			want: `GET /v1/jobs/..%2Fstatus`,
		},
		"log": {
			call: func(ctx context.Context, c *Client) error {
				b, err := c.Log(ctx, "12", LogOptions{Offset: 9, Tail: 3, Rank: 2, Follow: true})
				if err == nil {
					err = b.Close()
				}
				return err
			},
			want: `GET /v1/jobs/12/log?follow=true&offset=9&rank=2&tail=3`,
		},
		"action": {
			call: func(ctx context.Context, c *Client) error {
				_, err := c.Action(ctx, "cancel", &api.ActionRequest{IDs: []string{"1", "2"}})
				return err
			},
			want: `POST /v1/actions/cancel {"ids":["1","2"]}`,
		},
		"cluster": {
			call: func(ctx context.Context, c *Client) error { _, err := c.Cluster(ctx); return err },
			want: `GET /v1/cluster`,
		},
		"status": {
			call: func(ctx context.Context, c *Client) error { _, err := c.Status(ctx); return err },
			want: `GET /v1/status`,
		},
		"sync": {
			call: func(ctx context.Context, c *Client) error {
				_, err := c.NodeSync(ctx, "n 1", &api.SyncRequest{Instance: "i", WaitMS: 5})
				return err
			},
			want: `POST /v1/nodes/n%201/sync {"instance":"i","boot":"","inventoryHash":"","seen":0,"waitMs":5,"nowMs":0}`,
		},
		"stream-at": {
			call: func(ctx context.Context, c *Client) error {
				return c.PostStreamAt(ctx, "s1", 7, strings.NewReader("bytes"))
			},
			want: `POST /v1/streams/s1 at=7 bytes`,
		},
		"stream-fails": {
			call: func(ctx context.Context, c *Client) error { return c.FailStream(ctx, "s1", "no log") },
			want: `POST /v1/streams/s1 error=no log`,
		},
		"explain": {
			call: func(ctx context.Context, c *Client) error { _, err := c.Explain(ctx, "12"); return err },
			want: `GET /v1/jobs/12/explain`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := ""
			c := serve(t, func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				got = r.Method + " " + r.RequestURI
				if k := r.Header.Get(api.HeaderIdempotencyKey); k != "" {
					got += " key=" + k
				}
				if o := r.Header.Get(api.HeaderOffset); o != "" {
					got += " at=" + o
				}
				if e := r.Header.Get(api.HeaderStreamError); e != "" {
					got += " error=" + e
				}
				if len(body) > 0 {
					got += " " + string(body)
				}
				if r.Header.Get("Authorization") != "Bearer t0k" || r.Header.Get("User-Agent") != "test/1" {
					t.Errorf("headers: %v", r.Header)
				}
				reply(t, w, 200, struct{}{})
			})
			if err := tc.call(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("request (-want +got):\n%s", diff)
			}
		})
	}
}

func TestErrorAnswers(t *testing.T) {
	tests := map[string]struct {
		status int
		body   string
		want   *api.Error
	}{
		"problems": {
			status: 422,
			body:   `{"status":422,"code":"invalid_job","message":"bad","problems":[{"path":"a","message":"b"}]}`,
			want:   &api.Error{Status: 422, Code: api.CodeInvalidJob, Message: "bad", Problems: []api.Problem{{Path: "a", Message: "b"}}},
		},
		"not-json": {
			status: 404, body: "<h1>nope</h1>",
			want: &api.Error{Status: 404, Code: api.CodeNotFound, Message: "controller answered 404 Not Found: <h1>nope</h1>"},
		},
		"redirect": {
			status: 302, body: "away",
			want: &api.Error{Status: 302, Code: api.CodeBadRequest, Message: "controller answered 302 Found: away"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := serve(t, func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(tc.status)
				io.WriteString(w, tc.body)
			})
			_, err := c.Status(t.Context())
			got, ok := errors.AsType[*api.Error](err)
			if !ok {
				t.Fatalf("error is %T: %v", err, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

// A submission that meets a controller which is restarting is sent again with
// the same key, and the caller hears of it once.
func TestSubmitRepeats(t *testing.T) {
	var keys []string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		keys = append(keys, r.Header.Get(api.HeaderIdempotencyKey))
		switch len(keys) {
		case 1:
			reply(t, w, 503, api.Error{Code: api.CodeUnavailable, Message: "starting"})
		case 2:
			panic(http.ErrAbortHandler) // the connection breaks
		default:
			reply(t, w, 200, api.SubmitResponse{Number: 12})
		}
	})
	pauses, notices := 0, 0
	c.Retry = Retry{For: time.Minute, Sleep: noSleep(&pauses), Notice: func(error) { notices++ }}
	resp, err := c.Submit(t.Context(), &api.SubmitRequest{Job: json.RawMessage(`{}`)}, "")
	if err != nil {
		t.Fatal(err)
	}
	// net/http makes one of the repeats itself: the key tells it that it may.
	if resp.Number != 12 || pauses == 0 || notices != 1 {
		t.Errorf("number %d, pauses %d, notices %d; want 12, some, 1", resp.Number, pauses, notices)
	}
	if len(keys) != 3 || keys[0] == "" || keys[0] != keys[1] || keys[1] != keys[2] {
		t.Errorf("keys differ or are empty: %q", keys)
	}
}

func TestRetryEnds(t *testing.T) {
	tries, pauses := 0, 0
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		tries++
		w.Header().Set("Retry-After", "4")
		reply(t, w, 503, api.Error{Code: api.CodeUnavailable, Message: "busy"})
	})
	c.Retry = Retry{For: 9 * time.Second, Sleep: noSleep(&pauses)}
	_, err := c.Status(t.Context())
	if !IsUnavailable(err) || tries != 3 || pauses != 2 {
		t.Errorf("tries %d, pauses %d, err %v; want 3 tries with 2 pauses of 4 s", tries, pauses, err)
	}
}

func TestFinalErrorsAreNotRepeated(t *testing.T) {
	tries, pauses := 0, 0
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		tries++
		reply(t, w, 404, api.Error{Code: api.CodeNotFound, Message: "no job 1"})
	})
	c.Retry = Retry{For: time.Hour, Sleep: noSleep(&pauses)}
	_, err := c.Job(t.Context(), "1", JobOptions{})
	if !IsCode(err, api.CodeNotFound) || tries != 1 {
		t.Errorf("tries %d, err %v", tries, err)
	}
}

func TestUnreachable(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "gone.sock")
	c := &Client{Address: socket}
	_, err := c.Status(t.Context())
	want := "controller at unix://" + socket + " does not answer: connect: no such file or directory; is gctld running? try `gctld dev` or set GBATCH_CONTROLLER"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if _, ok := errors.AsType[*Unreachable](err); !ok {
		t.Errorf("error is %T", err)
	}
}

func TestSilentControllerTimesOut(t *testing.T) {
	release := make(chan struct{})
	c := serve(t, func(http.ResponseWriter, *http.Request) { <-release })
	t.Cleanup(func() { close(release) }) // before the server's Close
	c.Timeout = time.Millisecond
	_, err := c.Status(t.Context())
	u, ok := errors.AsType[*Unreachable](err)
	if !ok || u.Err.Error() != "no answer within 1ms" {
		t.Errorf("got %v", err)
	}
}

func TestCallerGivesUp(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	release := make(chan struct{})
	c := serve(t, func(http.ResponseWriter, *http.Request) { cancel(); <-release })
	t.Cleanup(func() { close(release) })
	_, err := c.Status(ctx)
	if !errors.Is(err, context.Canceled) || IsUnavailable(err) {
		t.Errorf("got %v, want the caller's own cancellation", err)
	}
}

// A log that breaks off is told from one that ended.
func TestLogBreaks(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "half")
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	})
	body, err := c.Log(t.Context(), "1", LogOptions{Follow: true})
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	data, err := io.ReadAll(body)
	if string(data) != "half" || !IsUnavailable(err) {
		t.Errorf("read %q, %v", data, err)
	}
}

func TestBackoff(t *testing.T) {
	var b Backoff
	limit := backoffMin
	for i := range 20 {
		d := b.Next()
		if d > limit || d < limit/2 {
			t.Errorf("pause %d is %v, want within %v and %v", i, d, limit/2, limit)
		}
		limit = min(2*limit, backoffMax)
	}
	b.Reset()
	if d := b.Next(); d > backoffMin {
		t.Errorf("pause after reset is %v", d)
	}
}
