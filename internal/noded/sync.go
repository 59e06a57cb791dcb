package noded

import (
	"context"
	"io"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/client"
)

// controller is what the agent needs of the controller.
type controller interface {
	NodeSync(ctx context.Context, name string, req *api.SyncRequest) (*api.SyncResponse, error)
	PostStreamAt(ctx context.Context, id string, offset int64, body io.Reader) error
	FailStream(ctx context.Context, id, why string) error
	JoinNode(ctx context.Context, name, token string, request []byte) ([]byte, error)
	RenewNode(ctx context.Context, name string, request []byte) ([]byte, error)
	DialStream(ctx context.Context, id string) (*client.Stream, error)
}

// How long a change may wait for others to go with it. An end is told at once:
// what the rank held can be given to the next. The rest is told soon, so that
// a short job needs one message from acceptance to end.
const (
	newsNow      = 0
	newsRunning  = 20 * time.Millisecond
	newsProgress = 250 * time.Millisecond
	newsPull     = time.Second
)

// tell asks for a sync with news within the given time.
func (a *Agent) tell(within time.Duration) {
	at := time.Now().Add(within)
	a.newsMu.Lock()
	sooner := a.newsAt.IsZero() || at.Before(a.newsAt)
	if sooner {
		a.newsAt = at
	}
	a.newsMu.Unlock()
	if sooner {
		select {
		case a.newsWake <- struct{}{}:
		default:
		}
	}
}

// due waits until news are due and takes them over.
func (a *Agent) due(ctx context.Context) error {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		a.newsMu.Lock()
		at := a.newsAt
		left := time.Until(at)
		if !at.IsZero() && left <= 0 {
			a.newsAt = time.Time{}
		}
		a.newsMu.Unlock()
		switch {
		case at.IsZero():
			left = time.Hour
		case left <= 0:
			return ctx.Err()
		}
		timer.Reset(left)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-a.newsWake:
		case <-timer.C:
		}
	}
}

// pollLoop keeps one long poll open. It is how orders arrive.
func (a *Agent) pollLoop(ctx context.Context) {
	var pause client.Backoff
	wait := time.Duration(0) // the first sync is answered at once
	for ctx.Err() == nil {
		err := a.credential.Ready(ctx, a.ctl, a.log)
		if err == nil {
			err = a.sync(ctx, wait)
		}
		if err != nil {
			a.credential.Refused(err)
			a.away(ctx, err, &pause)
			wait = 0
			continue
		}
		a.back()
		pause.Reset()
		wait = a.contact.wait()
	}
}

// newsLoop sends one sync for all that changed since the last one; never more
// than one is in flight.
func (a *Agent) newsLoop(ctx context.Context) {
	var pause client.Backoff
	for a.due(ctx) == nil {
		for ctx.Err() == nil {
			err := a.sync(ctx, 0)
			if err == nil {
				pause.Reset()
				break
			}
			// The poll loop says that the controller is away.
			_ = client.Sleep(ctx, pause.Next())
		}
	}
}

// away notes a failed sync, once in each absence, and waits.
func (a *Agent) away(ctx context.Context, err error, pause *client.Backoff) {
	if ctx.Err() != nil {
		return
	}
	if !a.isAway {
		a.isAway = true
		left, _ := a.contact.left()
		a.log.Warn("controller does not answer; running jobs go on", "controller", a.cfg.Controller, "error", err, "lease_left", left.Round(time.Second))
	}
	_ = client.Sleep(ctx, pause.Next())
}

func (a *Agent) back() {
	if a.isAway {
		a.isAway = false
		a.log.Info("controller answers again", "controller", a.cfg.Controller)
	}
}

// sync makes one exchange and acts on the answer.
func (a *Agent) sync(ctx context.Context, wait time.Duration) error {
	req, ticket := a.request(wait)
	sent := a.contact.now()
	resp, err := a.ctl.NodeSync(ctx, a.cfg.Name, req)
	if err != nil {
		return err
	}
	lease := time.Duration(resp.LeaseMS) * time.Millisecond
	if saved, err := a.contact.answered(sent, lease); saved {
		a.health.stateError(err)
	}
	a.leaseWake()
	a.take(ctx, ticket, resp)
	return nil
}

// request gathers what the node says, and the ticket by which the answer is
// put in order with others.
func (a *Agent) request(wait time.Duration) (*api.SyncRequest, ticket) {
	inv, hash := a.inventory()
	unhealthy := a.health.reasons()
	samples := a.devices.Samples()
	a.mu.Lock()
	defer a.mu.Unlock()
	req := &api.SyncRequest{
		Instance:      a.instance,
		Boot:          a.boot,
		InventoryHash: hash,
		Unhealthy:     unhealthy,
		Ranks:         a.statuses(),
		Samples:       samples,
		Use:           a.uses(),
		Prepulled:     a.ahead.Results(),
		Seen:          a.order.seen,
		WaitMS:        wait.Milliseconds(),
		NowMS:         time.Now().UnixMilli(),
	}
	if a.wantInventory {
		req.Inventory = inv
	}
	return req, ticket{seen: a.order.seen, epoch: a.order.epoch}
}

// ticket is what was known when a request was sent.
type ticket struct {
	seen  uint64
	epoch int
}

// ordering decides which answers are news. Two requests may be in flight, so
// an older desired set can arrive after a newer one: only a higher version
// counts. A version below the one that the request itself named can only come
// from a controller that began to count anew; then all requests that were
// sent before count for nothing.
type ordering struct {
	seen  uint64
	epoch int
}

// accept says whether an answer's desired set is to be acted on.
func (o *ordering) accept(t ticket, resp *api.SyncResponse) bool {
	switch {
	case t.epoch != o.epoch || !resp.Changed:
		return false
	case resp.Version > o.seen:
	case resp.Version < t.seen:
		o.epoch++
	default:
		return false
	}
	o.seen = resp.Version
	return true
}

// take acts on an answer.
func (a *Agent) take(ctx context.Context, t ticket, resp *api.SyncResponse) {
	a.mu.Lock()
	a.wantInventory = resp.WantInventory
	fresh := a.order.accept(t, resp)
	if fresh {
		a.desire(resp.Desired)
		a.ahead.Want(resp.Prepull)
	}
	a.mu.Unlock()
	if resp.WantInventory {
		a.tell(newsNow)
	}
	for _, s := range resp.Streams {
		a.stream(ctx, s)
	}
}
