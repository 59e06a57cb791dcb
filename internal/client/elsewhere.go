package client

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"gbatch/internal/api"
)

// A machine that lost its power, is cut off or stands still closes no connection: what it was asked over one that is open
// stays unanswered, while another controller leads. So who waits for one of several controllers, as a node for orders or
// `glog -f` for more, asks another one whether it is still the one that leads. That one answers when it is not, so nothing is sent
// while all is well but once a minute.
const (
	heldAfter  = time.Second     // a request waits that is not answered by then
	heldSpread = 4 * time.Second // or up to so much later: many nodes begin to wait at the same time, and connect to the other controllers for it
	askAgain   = time.Second     // after a controller that could not say; it doubles up to askRarely
	askRarely  = time.Minute
)

// held are the requests that one of several controllers has not answered, or goes on answering.
type held struct {
	one   http.RoundTripper
	hosts []string

	mu    sync.Mutex
	names map[string]string     // of the controllers at hosts, as they have said
	open  map[*heldRequest]bool // those that wait
	stop  context.CancelFunc    // ends watch; nil: it does not run
}

// heldRequest is a request that has gone out.
type heldRequest struct {
	host   string
	giveUp context.CancelCauseFunc
	over   bool // guarded by held.mu
}

// begin notes a request that goes out. Call done when its answer has come whole.
func (h *held) begin(host string, giveUp context.CancelCauseFunc) (done func()) {
	r := &heldRequest{host: host, giveUp: giveUp}
	timer := time.AfterFunc(heldAfter+rand.N(heldSpread), func() { h.add(r) })
	return func() {
		timer.Stop()
		h.remove(r)
	}
}

func (h *held) add(r *heldRequest) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if r.over {
		return
	}
	if h.open == nil {
		h.open = map[*heldRequest]bool{}
	}
	h.open[r] = true
	if h.stop == nil {
		var ctx context.Context
		ctx, h.stop = context.WithCancel(context.Background())
		go h.watch(ctx) // ends when no request waits any more
	}
}

func (h *held) remove(r *heldRequest) {
	h.mu.Lock()
	defer h.mu.Unlock()
	r.over = true
	delete(h.open, r)
	if len(h.open) == 0 && h.stop != nil {
		h.stop()
		h.stop = nil
	}
}

// answered notes which controller a host is.
func (h *held) answered(host string, resp *http.Response) {
	name := resp.Header.Get(api.HeaderController)
	if name == "" {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.names == nil {
		h.names = map[string]string{}
	}
	h.names[host] = name
}

// watch asks who leads, until ctx is done.
func (h *held) watch(ctx context.Context) {
	pause := askAgain
	for try := 0; ctx.Err() == nil; {
		at, name := h.waits()
		others := slices.DeleteFunc(slices.Clone(h.hosts), func(host string) bool { return host == at })
		if len(others) == 0 {
			return // an address that names one twice
		}
		began := time.Now()
		leader, err := h.ask(ctx, others[try%len(others)], name)
		known := err == nil && leader != ""
		if known {
			h.moved(leader)
		}
		if known && time.Since(began) > askAgain {
			pause = askAgain
			continue
		}
		if err != nil {
			try++
		}
		_ = Sleep(ctx, pause)
		pause = min(2*pause, askRarely)
	}
}

// waits is the host for which a request waits, and its controller's name.
func (h *held) waits() (host, name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for r := range h.open {
		host = r.host
	}
	return host, h.names[host]
}

// ask waits until a host says that another controller than the one that is named leads, or for as long as it is held there.
func (h *held) ask(ctx context.Context, host, not string) (leader string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*askRarely)
	defer cancel()
	address := url.URL{Scheme: "https", Host: host, Path: api.PathLeader, RawQuery: url.Values{"not": {not}}.Encode()}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return "", err
	}
	resp, _, err := exchange(h.one, r, connectWait, func(context.CancelCauseFunc) func() { return func() {} })
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	h.answered(host, resp)
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: %s", host, resp.Status) // an older one
	}
	var l api.Leader
	err = json.NewDecoder(io.LimitReader(resp.Body, maxErrorBody)).Decode(&l)
	return l.Name, err
}

// moved gives up what waits for a controller that is not the one that leads.
func (h *held) moved(leader string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for r := range h.open {
		if name := h.names[r.host]; name != "" && name != leader {
			r.giveUp(fmt.Errorf("controller %s leads now, and %s has not answered", leader, name))
		}
	}
}

// heldBody is an answer that goes on until it is closed.
type heldBody struct {
	io.ReadCloser
	ctx  context.Context
	done func()
}

// Read says why, where the answer was given up.
func (b *heldBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		if cause := context.Cause(b.ctx); cause != nil {
			err = cause
		}
	}
	return n, err
}

func (b *heldBody) Close() error {
	defer b.done()
	return b.ReadCloser.Close()
}
