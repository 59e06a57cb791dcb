package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"
)

// several sends requests to whichever of several controllers leads: to the one that
// answered last, and on to the next where that one cannot be reached or says that it
// does not lead. Nothing was done there then.
type several struct {
	one   http.RoundTripper
	hosts []string
	at    atomic.Int32 // of hosts
	slow  atomic.Int32 // how many rounds in a row have found nobody in time
	held  held
}

func newSeveral(one http.RoundTripper, hosts []string) *several {
	return &several{one: one, hosts: hosts, held: held{one: one, hosts: hosts}}
}

// connectWait is how long a connection to one of several controllers may take before the
// next one is asked. A machine that is gone, a name server that is silent and a daemon that was
// stopped all say nothing, and the usual time for that is long beside that without a leader. It
// doubles while no controller is found, up to the usual time: all may be slow.
const connectWait = time.Second

// RoundTrip makes one exchange. An error of a request that may have gone out is returned, as what came of it
// is not known; the next one begins at the next host. Where some are not reached and another one says that it
// does not lead, its answer is what is returned: there will be one that leads soon.
func (s *several) RoundTrip(req *http.Request) (*http.Response, error) {
	from, late := int(s.at.Load()), false
	var elsewhere *http.Response
	for try := 0; ; try++ {
		i := (from + try) % len(s.hosts)
		r := req.Clone(req.Context())
		r.URL.Host, r.Host = s.hosts[i], s.hosts[i]
		if try > 0 && req.GetBody != nil {
			var err error
			if r.Body, err = req.GetBody(); err != nil {
				return nil, err
			}
		}
		wait := min(connectWait<<min(s.slow.Load(), 4), connectTimeout)
		resp, sent, err := exchange(s.one, r, wait, func(giveUp context.CancelCauseFunc) func() { return s.held.begin(r.URL.Host, giveUp) })
		if err == nil {
			s.held.answered(r.URL.Host, resp)
		}
		if err == nil && resp.StatusCode != http.StatusMisdirectedRequest {
			s.at.Store(int32(i))
			s.slow.Store(0)
			return resp, nil
		}
		late = late || errors.Is(err, errConnectLate)
		s.at.Store(int32((i + 1) % len(s.hosts)))
		last := try == len(s.hosts)-1 || req.Body != nil && req.Body != http.NoBody && req.GetBody == nil
		if last && late {
			s.slow.Add(1)
		}
		if last && err != nil && !sent && elsewhere != nil && req.Context().Err() == nil {
			return elsewhere, nil
		}
		if last || err != nil && sent || req.Context().Err() != nil {
			return resp, err
		}
		if resp != nil {
			body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // so that the connection can be used again
			_ = resp.Body.Close()
			elsewhere, resp.Body = resp, io.NopCloser(bytes.NewReader(body))
		}
	}
}

var errConnectLate = errors.New("no connection")

// exchange makes one exchange with one host, to which a connection is there within wait. Not sent: it had no connection over which anything could
// go out. begin is told how to give the exchange up, and gives what is to be called when it is over.
func exchange(one http.RoundTripper, r *http.Request, wait time.Duration, begin func(context.CancelCauseFunc) (done func())) (resp *http.Response, sent bool, err error) {
	var connected atomic.Bool
	ctx, giveUp := context.WithCancelCause(r.Context()) // it ends when the answer's body has been read
	timer := time.AfterFunc(wait, func() { giveUp(fmt.Errorf("%w within %v", errConnectLate, wait)) })
	defer timer.Stop()
	done := begin(giveUp)
	has := make(chan struct{})
	unwant := sync.OnceFunc(func() { close(has) })
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) {
		connected.Store(true)
		timer.Stop()
		unwant()
	}}
	resp, err = one.RoundTrip(r.WithContext(httptrace.WithClientTrace(wanted(ctx, has), trace)))
	if err != nil {
		unwant()
		if cause := context.Cause(ctx); cause != nil && r.Context().Err() == nil {
			err = cause
		}
		done()
		giveUp(nil)
		return nil, connected.Load(), err
	}
	if resp.StatusCode == http.StatusSwitchingProtocols {
		done() // who uses the connection then looks after it
		return resp, true, nil
	}
	resp.Body = &heldBody{resp.Body, ctx, func() { done(); giveUp(nil) }}
	return resp, true, nil
}

// CloseIdleConnections is how an http.Client reaches the one below.
func (s *several) CloseIdleConnections() {
	if c, ok := s.one.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
