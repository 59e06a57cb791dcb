package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/api"
	"gbatch/internal/hosttest"
)

// TestSeveralControllers: requests find the controller that leads, wherever it is in the
// address, and are done once.
func TestSeveralControllers(t *testing.T) {
	var leads atomic.Int32 // which one; none if there is no such
	var done [3]atomic.Int32
	var hosts []string
	for i := range 3 {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if int(leads.Load()) != i {
				e := api.Errorf(api.CodeElsewhere, "another one leads")
				w.WriteHeader(e.Status)
				_ = json.NewEncoder(w).Encode(e)
				return
			}
			done[i].Add(1)
			var in api.SubmitRequest
			if err := json.NewDecoder(r.Body).Decode(&in); err != nil || string(in.Job) != `{"a":1}` {
				t.Errorf("controller %d got %+v, %v", i, in, err)
			}
			_ = json.NewEncoder(w).Encode(api.SubmitResponse{Number: 7})
		}))
		t.Cleanup(srv.Close)
		hosts = append(hosts, srv.Listener.Addr().String())
	}
	gone, err := hosttest.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	hosts = append([]string{gone}, hosts...)
	plain := &http.Transport{}
	t.Cleanup(plain.CloseIdleConnections)
	c := &Client{Address: "https://" + strings.Join(hosts, ",") + "#" + somePin[1:], Transport: insecure{newSeveral(plain, hosts)}}
	for _, i := range []int32{0, 1, 0, 2} {
		leads.Store(i)
		if _, err := c.Submit(t.Context(), &api.SubmitRequest{Job: json.RawMessage(`{"a":1}`)}, "k"); err != nil {
			t.Fatalf("controller %d leads: %v", i, err)
		}
	}
	if diff := cmp.Diff([]int32{2, 1, 1}, []int32{done[0].Load(), done[1].Load(), done[2].Load()}); diff != "" {
		t.Errorf("done (-want +got):\n%s", diff)
	}
	leads.Store(9)
	c.Retry = Retry{For: time.Millisecond}
	if _, err := c.Submit(t.Context(), &api.SubmitRequest{Job: json.RawMessage(`{"a":1}`)}, "k"); !IsCode(err, api.CodeElsewhere) || !IsUnavailable(err) {
		t.Errorf("nobody leads: %v", err)
	}
}

// insecure speaks plain HTTP to the test's servers.
type insecure struct{ http.RoundTripper }

func (i insecure) RoundTrip(r *http.Request) (*http.Response, error) {
	r.URL.Scheme = "http"
	return i.RoundTripper.RoundTrip(r)
}

// TestSilentController: a controller of whose machine, name server or daemon nothing is heard is not
// waited for as long as one that is alone, the request goes out once, and the patience grows
// where no controller is in time.
func TestSilentController(t *testing.T) {
	silent := func(r *http.Request) (*http.Response, error) {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	unknown := func(r *http.Request) (*http.Response, error) {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "server misbehaving", Name: r.URL.Hostname(), IsTemporary: true}}
	}
	stopped := func(*http.Request) (*http.Response, error) { return nil, errors.New("TLS handshake timeout") }
	after := func(connect, answer time.Duration, status int) func(*http.Request) (*http.Response, error) {
		return func(r *http.Request) (*http.Response, error) {
			if err := Sleep(r.Context(), connect); err != nil {
				return nil, err
			}
			httptrace.ContextClientTrace(r.Context()).GotConn(httptrace.GotConnInfo{})
			if err := Sleep(r.Context(), answer); err != nil {
				return nil, err
			}
			return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader(`{"number":7}`))}, nil
		}
	}
	for name, tc := range map[string]struct {
		hosts []func(*http.Request) (*http.Response, error)
		took  time.Duration
		asked []int
		lost  bool
	}{
		"a machine is gone":        {[]func(*http.Request) (*http.Response, error){silent, after(0, 0, 421), after(0, 0, 200)}, time.Second, []int{1, 1, 1}, false},
		"a name is not known":      {[]func(*http.Request) (*http.Response, error){unknown, stopped, after(0, 0, 200)}, 0, []int{1, 1, 1}, false},
		"it is connected and busy": {[]func(*http.Request) (*http.Response, error){after(0, 20*time.Second, 200), silent, silent}, 20 * time.Second, []int{1, 0, 0}, false},
		"all are slow":             {[]func(*http.Request) (*http.Response, error){after(5*time.Second, 0, 200), after(5*time.Second, 0, 421), silent}, 3*(1+2+4)*time.Second + 5*time.Second, []int{4, 3, 3}, false},
		"it died with the request": {[]func(*http.Request) (*http.Response, error){dies, after(0, 0, 200), silent}, 0, []int{1, 0, 0}, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked := make([]int, 3)
				s := newSeveral(transport(func(r *http.Request) (*http.Response, error) {
					i := int(r.URL.Host[0] - '0')
					if r.URL.Path == api.PathLeader {
						return nil, errors.New("it is not known who leads")
					}
					asked[i]++
					return tc.hosts[i](r)
				}), []string{"0:1", "1:1", "2:1"})
				began, c := time.Now(), &Client{Address: "/none", Transport: s, Timeout: time.Hour}
				if !tc.lost {
					c.Retry = Retry{For: time.Hour, Sleep: func(context.Context, time.Duration) error { return nil }}
				}
				_, err := c.Submit(t.Context(), &api.SubmitRequest{Job: json.RawMessage(`{"a":1}`)}, "k")
				if (err != nil) != tc.lost {
					t.Error(err)
				}
				if took := time.Since(began); took != tc.took {
					t.Errorf("it took %v, want %v", took, tc.took)
				}
				if diff := cmp.Diff(tc.asked, asked); diff != "" {
					t.Errorf("asked (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// dies is a controller that dies when it has the request.
func dies(r *http.Request) (*http.Response, error) {
	httptrace.ContextClientTrace(r.Context()).GotConn(httptrace.GotConnInfo{})
	return nil, io.ErrUnexpectedEOF
}

// A controller that does not lead says more than one that is gone: pauses stay short then, as
// another one leads soon.
func TestReferredAndGone(t *testing.T) {
	refers, err := json.Marshal(api.Errorf(api.CodeElsewhere, "no controller leads at the moment"))
	if err != nil {
		t.Fatal(err)
	}
	for _, gone := range []string{"0:1", "1:1", "2:1"} {
		s := newSeveral(transport(func(r *http.Request) (*http.Response, error) {
			if r.URL.Host == gone {
				return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
			}
			return &http.Response{StatusCode: http.StatusMisdirectedRequest, Body: io.NopCloser(bytes.NewReader(refers))}, nil
		}), []string{"0:1", "1:1", "2:1"})
		c := &Client{Address: "/none", Transport: s}
		if _, err := c.Submit(t.Context(), &api.SubmitRequest{Job: json.RawMessage(`{"a":1}`)}, "k"); !IsCode(err, api.CodeElsewhere) {
			t.Errorf("%s is gone: %v", gone, err)
		}
	}
}

func TestSeveralHosts(t *testing.T) {
	e, err := parseAddress("https://a:7077,b.example.org:7077,[::1]:7077#" + somePin[1:])
	if err != nil {
		t.Fatal(err)
	}
	want := endpoint{base: "https://a:7077", pin: somePin[1:], hosts: []string{"a:7077", "b.example.org:7077", "[::1]:7077"}}
	if diff := cmp.Diff(want, e, cmp.AllowUnexported(endpoint{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := e.String(); got != "https://a:7077,b.example.org:7077,[::1]:7077" {
		t.Errorf("shown as %s", got)
	}
	for _, bad := range []string{"https://a:7077,#" + somePin[1:], "https://a:7077,b:x#" + somePin[1:], "https://a:7077,u@b:7077#" + somePin[1:], "https://a:7077,b:7077/x#" + somePin[1:]} {
		if _, err := parseAddress(bad); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
}
