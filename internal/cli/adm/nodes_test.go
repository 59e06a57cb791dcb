package adm

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/cli/clitest"
	"gbatch/internal/cli/exit"
	"gbatch/internal/client"
)

func TestMain(m *testing.M) { clitest.Main(m) }

func toServer(srv *httptest.Server) *client.Client {
	return &client.Client{Address: "/none", Transport: clitest.RoundTripper(func(r *http.Request) (*http.Response, error) {
		r.URL.Host = srv.Listener.Addr().String()
		return http.DefaultTransport.RoundTrip(r)
	})}
}

// TestOperator looks at what gadm asks of the controller and says to the user.
func TestOperator(t *testing.T) {
	operate(t, map[string]operation{
		"drain": {
			run: func(ctx context.Context, a *cli.App) error {
				return (&Drain{Nodes: []string{"gpu[01-02]"}, Reason: "new driver"}).Run(ctx, a)
			},
			asks: []string{`POST /v1/nodes/gpu01/drain {"reason":"new driver"}`, `POST /v1/nodes/gpu02/drain {"reason":"new driver"}`},
			says: "gpu01 drained\ngpu02 drained\n",
		},
		"drained": {
			run: func(ctx context.Context, a *cli.App) error {
				return (&Drain{Nodes: []string{"gpu01"}, Reason: "new driver", Wait: true}).Run(ctx, a)
			},
			asks: []string{`POST /v1/nodes/gpu01/drain {"reason":"new driver"}`, "GET /v1/nodes/gpu01 "},
			says: "gpu01 drained\n",
		},
		"late": {
			run: func(ctx context.Context, a *cli.App) error {
				return (&Drain{Nodes: []string{"busy"}, Reason: "new driver", Deadline: time.Second}).Run(ctx, a)
			},
			asks: []string{`POST /v1/nodes/busy/drain {"reason":"new driver"}`, "GET /v1/nodes/busy "},
			says: "busy is draining, jobs there: 1\n", code: exit.Failure,
		},
		"evicted": {
			run: func(ctx context.Context, a *cli.App) error {
				return (&Drain{Nodes: []string{"gpu01"}, Reason: "new driver", Evict: true}).Run(ctx, a)
			},
			asks: []string{`POST /v1/nodes/gpu01/drain {"reason":"new driver","evict":true}`},
			says: "gpu01 drained\n  job 12 (train) of ann is being halted; a new job will continue it\n",
		},
		"evicted later, then rebooted": {
			run: func(ctx context.Context, a *cli.App) error {
				return (&Drain{Nodes: []string{"gpu01"}, Reason: "new driver", Evict: true, Reboot: true, Deadline: 4 * time.Hour}).Run(ctx, a)
			},
			asks: []string{`POST /v1/nodes/gpu01/drain {"reason":"new driver","evict":true,"evictIn":14400,"reboot":true}`, "GET /v1/nodes/gpu01 "},
		},
		"one GPU is not rebooted": {
			run: func(ctx context.Context, a *cli.App) error {
				return (&Drain{Nodes: []string{"gpu01"}, GPU: "3", Reason: "new driver", Reboot: true}).Run(ctx, a)
			},
			code: exit.Usage,
		},
		"one GPU is not waited for": {
			run: func(ctx context.Context, a *cli.App) error {
				return (&Drain{Nodes: []string{"gpu01"}, GPU: "3", Reason: "new driver", Wait: true}).Run(ctx, a)
			},
			code: exit.Usage,
		},
		"one-unknown": {
			run: func(ctx context.Context, a *cli.App) error {
				return (&Resume{Nodes: []string{"gpu09", "gpu01"}, GPU: "3"}).Run(ctx, a)
			},
			asks: []string{`POST /v1/nodes/gpu09/resume {"gpu":"3"}`, `POST /v1/nodes/gpu01/resume {"gpu":"3"}`},
			says: "GPU 3 of gpu01 resumed\n", code: exit.NotFound,
		},
		"reserve": {
			run: func(ctx context.Context, a *cli.App) error {
				return (&Reserve{From: "+2h", For: 4 * time.Hour, Name: "fix", Nodes: []string{"gpu[04-05]"}, Maintenance: true}).Run(ctx, a)
			},
			asks: []string{`POST /v1/reservations {"name":"fix","start":"2026-03-01T11:00:00Z","end":"2026-03-01T15:00:00Z","nodes":["gpu04","gpu05"],"maintenance":true}`},
			says: "reservation fix of gpu[04-05] from 2026-03-01T11:00:00Z until 2026-03-01T15:00:00Z\n",
		},
		"no-end": {
			run: func(ctx context.Context, a *cli.App) error {
				return (&Reserve{From: "now", Name: "fix"}).Run(ctx, a)
			},
			code: exit.Usage,
		},
		"bad-time": {
			run: func(ctx context.Context, a *cli.App) error {
				return (&Reserve{From: "someday", For: time.Hour, Name: "fix"}).Run(ctx, a)
			},
			code: exit.Usage,
		},
		"reserve GPUs": {
			run: func(ctx context.Context, a *cli.App) error {
				return (&Reserve{From: "now", For: time.Hour, Name: "demo", Nodes: []string{"gpu04"}, GPU: []string{"0", "3"}}).Run(ctx, a)
			},
			asks: []string{`POST /v1/reservations {"name":"demo","start":"2026-03-01T09:00:00Z","end":"2026-03-01T10:00:00Z","nodes":["gpu04"],"gpus":["0","3"]}`},
			says: "reservation demo of gpu04 (2 GPUs) from 2026-03-01T09:00:00Z until 2026-03-01T10:00:00Z\n" +
				"jobs use it with \"reservationIds\": [\"a280f7e8-b1e6-11e9-93a1-ffe9aeb472f8\"]\n",
		},
		"forget": {
			run:  func(ctx context.Context, a *cli.App) error { return (&Forget{Nodes: []string{"gpu01"}}).Run(ctx, a) },
			asks: []string{"DELETE /v1/nodes/gpu01 "},
			says: "gpu01 forgotten\n",
		},
		"list": {
			run:  func(ctx context.Context, a *cli.App) error { return Reservations{}.Run(ctx, a) },
			asks: []string{"GET /v1/reservations "},
			says: "NAME    UUID                                  FROM                  UNTIL                 AGAIN  NODES                FOR                               REASON\n" +
				"course  a280f7e8-b1e6-11e9-93a1-ffe9aeb472f8  2026-03-01T09:00:00Z  2026-03-01T10:00:00Z  -      gpu[01-02] (2 GPUs)  project ml101, jobs that name it  Tuesdays\n",
		},
	})
}

// TestReserveAgain is about reservations that come again.
func TestReserveAgain(t *testing.T) {
	operate(t, map[string]operation{
		"reserve again and again": {
			run: func(ctx context.Context, a *cli.App) error {
				return (&Reserve{From: "18:00", Until: "2026-03-02T06:00", Every: "weekday", Last: "2026-12-24", Zone: "Europe/Brussels", Name: "night", Nodes: []string{"gpu04"}, Maintenance: true}).Run(ctx, a)
			},
			asks: []string{`POST /v1/reservations {"name":"night","start":"2026-03-01T18:00:00+01:00","end":"2026-03-02T06:00:00+01:00","nodes":["gpu04"],"maintenance":true,"every":{"schedule":"0 18 * * 1-5","zone":"Europe/Brussels","until":"2026-12-25T00:00:00+01:00"}}`},
			says: "reservation night of gpu04 from 2026-03-01T18:00:00+01:00 until 2026-03-02T06:00:00+01:00, again each weekday 18:00 Europe/Brussels, last 2026-12-24\n",
		},
		"reserve at no time": {
			run: func(ctx context.Context, a *cli.App) error {
				return (&Reserve{From: "18:00", For: time.Hour, Every: "full moon", Name: "night", Nodes: []string{"gpu04"}}).Run(ctx, a)
			},
			code: exit.Usage,
		},
		"the last of one": {
			run: func(ctx context.Context, a *cli.App) error {
				return (&Reserve{From: "18:00", For: time.Hour, Last: "2026-12-24", Name: "night", Nodes: []string{"gpu04"}}).Run(ctx, a)
			},
			code: exit.Usage,
		},
		"skip": {
			run: func(ctx context.Context, a *cli.App) error {
				return (&Unreserve{Names: []string{"night"}, Skip: true}).Run(ctx, a)
			},
			asks: []string{"DELETE /v1/reservations/night "},
			says: "reservation night skips one time\n",
		},
	})
}

// operation is something that gadm is told to do.
type operation struct {
	run  func(context.Context, *cli.App) error
	asks []string
	says string
	code int
}

func operate(t *testing.T, tests map[string]operation) {
	t.Helper()
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var asks []string
			srv := httptest.NewServer(operated(t, &asks))
			defer srv.Close()
			var out bytes.Buffer
			a := &cli.App{Out: &out, Err: io.Discard, Client: toServer(srv), Now: func() time.Time { return clitest.Now }}
			code := a.Finish(cli.Program{Name: "gadm"}, tc.run(t.Context(), a))
			if code != tc.code {
				t.Errorf("exit code %d, want %d", code, tc.code)
			}
			if diff := cmp.Diff(tc.asks, asks); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			if got := out.String(); tc.says != "" && strings.Join(strings.Fields(tc.says), " ") != strings.Join(strings.Fields(got), " ") {
				t.Errorf("said:\n%s\nwant:\n%s", got, tc.says)
			}
		})
	}
}

// operated answers what gadm asks, and notes it.
func operated(t *testing.T, asks *[]string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		*asks = append(*asks, fmt.Sprintf("%s %s %s", r.Method, r.URL.Path, bytes.TrimSpace(body)))
		switch {
		case strings.Contains(r.URL.Path, "gpu09"):
			clitest.Refuse(w, api.Errorf(api.CodeNotFound, `there is no node "gpu09"`))
		case strings.HasPrefix(r.URL.Path, "/v1/nodes/") && r.Method == http.MethodGet:
			clitest.Answer(w, api.NodeDetail{Node: api.Node{Name: "busy", Jobs: strings.Count(r.URL.Path, "busy")}})
		case r.Method == http.MethodGet:
			clitest.Answer(w, api.ReservationList{Reservations: []api.Reservation{{Name: "course", UUID: "a280f7e8-b1e6-11e9-93a1-ffe9aeb472f8", Start: clitest.Now, End: clitest.Now.Add(time.Hour),
				Nodes: []string{"gpu01", "gpu02"}, GPUs: []string{"GPU-a", "GPU-b"}, Projects: []string{"ml101"}, Reason: "Tuesdays"}}})
		case r.URL.Path == api.PathReservations:
			var made api.Reservation
			if err := json.Unmarshal(body, &made); err != nil {
				t.Error(err)
			}
			made.UUID = "a280f7e8-b1e6-11e9-93a1-ffe9aeb472f8"
			clitest.Answer(w, made)
		case strings.HasSuffix(r.URL.Path, "/drain"):
			res := api.DrainResult{Evicted: []api.EvictedJob{}, Jobs: strings.Count(r.URL.Path, "busy")}
			if strings.Contains(string(body), `"evict":true`) {
				res.Evicted = append(res.Evicted, api.EvictedJob{ID: "12", Name: "train", User: "ann", What: "is being halted; a new job will continue it"})
			}
			clitest.Answer(w, res)
		default:
			w.WriteHeader(http.StatusNoContent)
		}
	}
}
