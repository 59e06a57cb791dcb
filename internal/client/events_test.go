package client

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"gbatch/internal/api"
)

// A stream that says nothing for three pings, as behind a cut cable, is broken;
// one that pings is not.
func TestEventsSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Client{Address: "/none", Transport: transport(func(r *http.Request) (*http.Response, error) {
			out, in := io.Pipe()
			go func() { // ended by the reader's close
				for range 10 {
					if _, err := io.WriteString(in, "id: 5\nevent: ping\ndata: {}\n\n"); err != nil {
						return
					}
					time.Sleep(api.PingEvery)
				}
			}()
			context.AfterFunc(r.Context(), func() { in.CloseWithError(r.Context().Err()) })
			return &http.Response{StatusCode: 200, Body: out}, nil
		})}
		began, pings := time.Now(), 0
		for ev, err := range c.Events(t.Context(), EventFilter{}) {
			if err != nil {
				if _, ok := errors.AsType[*Unreachable](err); !ok {
					t.Errorf("it ended with %v", err)
				}
				break
			}
			if pings++; ev.ID != 5 || ev.Kind != api.EventPing {
				t.Errorf("got %+v", ev)
			}
		}
		if took := time.Since(began); pings != 10 || took != 9*api.PingEvery+3*api.PingEvery {
			t.Errorf("%d pings, and it was broken after %v", pings, took)
		}
	})
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
