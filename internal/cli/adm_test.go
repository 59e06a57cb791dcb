package cli

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
	"gbatch/internal/client"
)

// TestOperator looks at what gadm asks of the controller and says to the user.
func TestOperator(t *testing.T) {
	now := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	tests := map[string]struct {
		run  func(context.Context, *App) error
		asks []string
		says string
		code int
	}{
		"drain": {
			run: func(ctx context.Context, a *App) error {
				return a.Drain(ctx, DrainOptions{Nodes: []string{"gpu[01-02]"}, Reason: "new driver"})
			},
			asks: []string{`POST /v1/nodes/gpu01/drain {"reason":"new driver"}`, `POST /v1/nodes/gpu02/drain {"reason":"new driver"}`},
			says: "gpu01 drained\ngpu02 drained\n",
		},
		"one-unknown": {
			run: func(ctx context.Context, a *App) error {
				return a.Resume(ctx, DrainOptions{Nodes: []string{"gpu09", "gpu01"}, GPU: "3"})
			},
			asks: []string{`POST /v1/nodes/gpu09/resume {"gpu":"3"}`, `POST /v1/nodes/gpu01/resume {"gpu":"3"}`},
			says: "GPU 3 of gpu01 resumed\n", code: ExitNotFound,
		},
		"reserve": {
			run: func(ctx context.Context, a *App) error {
				return a.Reserve(ctx, ReserveOptions{From: "+2h", For: 4 * time.Hour,
					Reservation: api.Reservation{Name: "fix", Nodes: []string{"gpu[04-05]"}, Maintenance: true}})
			},
			asks: []string{`POST /v1/reservations {"name":"fix","start":"2026-03-01T11:00:00Z","end":"2026-03-01T15:00:00Z","nodes":["gpu04","gpu05"],"maintenance":true}`},
			says: "reservation fix of gpu[04-05] from 2026-03-01T11:00:00Z until 2026-03-01T15:00:00Z\n",
		},
		"no-end": {
			run: func(ctx context.Context, a *App) error {
				return a.Reserve(ctx, ReserveOptions{From: "now", Reservation: api.Reservation{Name: "fix"}})
			},
			code: ExitUsage,
		},
		"bad-time": {
			run: func(ctx context.Context, a *App) error {
				return a.Reserve(ctx, ReserveOptions{From: "tomorrow", For: time.Hour, Reservation: api.Reservation{Name: "fix"}})
			},
			code: ExitUsage,
		},
		"reserve GPUs": {
			run: func(ctx context.Context, a *App) error {
				return a.Reserve(ctx, ReserveOptions{From: "now", For: time.Hour,
					Reservation: api.Reservation{Name: "demo", Nodes: []string{"gpu04"}, GPUs: []string{"0", "3"}}})
			},
			asks: []string{`POST /v1/reservations {"name":"demo","start":"2026-03-01T09:00:00Z","end":"2026-03-01T10:00:00Z","nodes":["gpu04"],"gpus":["0","3"]}`},
			says: "reservation demo of gpu04 (2 GPUs) from 2026-03-01T09:00:00Z until 2026-03-01T10:00:00Z\n" +
				"jobs use it with \"reservationIds\": [\"a280f7e8-b1e6-11e9-93a1-ffe9aeb472f8\"]\n",
		},
		"forget": {
			run:  func(ctx context.Context, a *App) error { return a.Forget(ctx, []string{"gpu01"}) },
			asks: []string{"DELETE /v1/nodes/gpu01 "},
			says: "gpu01 forgotten\n",
		},
		"list": {
			run:  func(ctx context.Context, a *App) error { return a.Reservations(ctx) },
			asks: []string{"GET /v1/reservations "},
			says: "NAME    UUID  FROM                  UNTIL                 NODES        FOR                                REASON\n" +
				"course  a280f7e8-b1e6-11e9-93a1-ffe9aeb472f8  2026-03-01T09:00:00Z  2026-03-01T10:00:00Z  gpu[01-02] (2 GPUs)  project ml101, jobs that name it  Tuesdays\n",
		},
	}
	toServer := func(srv *httptest.Server) *client.Client {
		return &client.Client{Address: "/none", Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			r.URL.Host = srv.Listener.Addr().String()
			return http.DefaultTransport.RoundTrip(r)
		})}
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var asks []string
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if err != nil {
					t.Error(err)
				}
				asks = append(asks, fmt.Sprintf("%s %s %s", r.Method, r.URL.Path, bytes.TrimSpace(body)))
				switch {
				case strings.Contains(r.URL.Path, "gpu09"):
					refuse(w, &api.Error{Status: 404, Code: api.CodeNotFound, Message: `there is no node "gpu09"`})
				case r.Method == http.MethodGet:
					answer(w, api.ReservationList{Reservations: []api.Reservation{{Name: "course", UUID: "a280f7e8-b1e6-11e9-93a1-ffe9aeb472f8", Start: now, End: now.Add(time.Hour),
						Nodes: []string{"gpu01", "gpu02"}, GPUs: []string{"GPU-a", "GPU-b"}, Projects: []string{"ml101"}, Reason: "Tuesdays"}}})
				case r.URL.Path == api.PathReservations:
					var made api.Reservation
					if err := json.Unmarshal(body, &made); err != nil {
						t.Error(err)
					}
					made.UUID = "a280f7e8-b1e6-11e9-93a1-ffe9aeb472f8"
					answer(w, made)
				default:
					w.WriteHeader(http.StatusNoContent)
				}
			}))
			defer srv.Close()
			var out bytes.Buffer
			a := &App{Out: &out, Err: io.Discard, Client: toServer(srv), Now: func() time.Time { return now }}
			code := a.fail(Program{Name: "gadm"}, tc.run(t.Context(), a))
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
