package client

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/api"
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
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	hosts = append([]string{gone.Addr().String()}, hosts...)
	if err := gone.Close(); err != nil {
		t.Fatal(err)
	}
	plain := &http.Transport{}
	t.Cleanup(plain.CloseIdleConnections)
	c := &Client{Address: "https://" + strings.Join(hosts, ",") + "#" + somePin[1:], Transport: insecure{&several{one: plain, hosts: hosts}}}
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
