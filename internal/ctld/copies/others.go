package copies

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/pki"
	"gbatch/internal/replica"
)

// Others are the further controllers while this one leads. It is an archive of package
// keep, and by Trees the Others of package trees.
type Others struct {
	self    string
	members func() ([]replica.Member, error)
	client  *http.Client

	mu     sync.Mutex
	failed map[string]time.Time // when one did not answer last, by its address
}

// How long the others are waited for: for a connection, and for an answer when all was
// sent. A connection is kept for the next log for a while.
const (
	dialWait   = 2 * time.Second
	answerWait = 30 * time.Second
	keptOpen   = 30 * time.Second
)

// spared is for how long one that did not answer is not asked to take anything: each
// log would wait for it.
const spared = time.Minute

// NewOthers is for the controller of that name among all that members tells.
func NewOthers(self string, members func() ([]replica.Member, error), conf func() *tls.Config) *Others {
	return &Others{self: self, members: members, failed: map[string]time.Time{}, client: &http.Client{Transport: &http.Transport{
		DialTLSContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return dial(ctx, address, conf())
		},
		ResponseHeaderTimeout: answerWait, IdleConnTimeout: keptOpen, MaxIdleConnsPerHost: 2, DisableCompression: true,
	}}}
}

// dial reaches a controller that can take files.
func dial(ctx context.Context, address string, conf *tls.Config) (net.Conn, error) {
	c, err := (&tls.Dialer{NetDialer: &net.Dialer{Timeout: dialWait}, Config: conf}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	if c.(*tls.Conn).ConnectionState().NegotiatedProtocol != pki.CopyProtocol {
		return nil, errors.Join(errors.New("its version is too old to take files"), c.Close())
	}
	return c, nil
}

// Close ends connections that are not in use.
func (o *Others) Close() { o.client.CloseIdleConnections() }

// Put gives a file to all others that answer. It has failed if they are no majority
// together with this one.
func (o *Others) Put(ctx context.Context, name string, body *io.SectionReader) error {
	all, err := o.members()
	if err != nil {
		return err
	}
	voters, have := 0, 0
	var errs error
	for _, m := range all {
		if m.Voter {
			voters++
		}
		if m.Name != o.self {
			err := o.give(ctx, m, name, body)
			errs = errors.Join(errs, err)
			if err != nil {
				continue
			}
		}
		if m.Voter {
			have++
		}
	}
	if have <= voters/2 {
		return errs
	}
	return nil
}

func (o *Others) give(ctx context.Context, m replica.Member, name string, body *io.SectionReader) error {
	if err := o.spare(m); err != nil {
		return err
	}
	// Of its own, as the one before may still be read when its answer is there.
	part := io.NewSectionReader(body, 0, body.Size())
	resp, err := o.ask(ctx, m, name, part)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusNoContent {
		return refused(m, resp)
	}
	return nil
}

// Get is a file of one that has it; nil: none has it.
func (o *Others) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	all, err := o.members()
	if err != nil {
		return nil, err
	}
	var silent []string
	for _, m := range all {
		if m.Name == o.self {
			continue
		}
		resp, err := o.ask(ctx, m, name, nil)
		switch {
		case err != nil:
			silent = append(silent, m.Name)
			continue
		case resp.StatusCode == http.StatusOK:
			return resp.Body, nil
		case resp.StatusCode != http.StatusNotFound:
			silent = append(silent, m.Name)
		}
		resp.Body.Close()
	}
	if len(silent) > 0 {
		return nil, api.Errorf(api.CodeUnavailable, "the log is not here, and controller %s, which may have it, does not give it", strings.Join(silent, ", ")).
			WithHint("`gadm controllers` shows how the controllers fare")
	}
	return nil, nil
}

// ask asks a controller for a log, or to take one.
func (o *Others) ask(ctx context.Context, m replica.Member, name string, take *io.SectionReader) (*http.Response, error) {
	if take == nil {
		return o.do(ctx, m, http.MethodGet, logsPath+name, nil)
	}
	return o.do(ctx, m, http.MethodPut, logsPath+name, take)
}

// sized is what is sent.
type sized interface {
	io.Reader
	Size() int64
}

// do asks a controller for something, and notes whether it answers.
func (o *Others) do(ctx context.Context, m replica.Member, method, path string, body sized) (*http.Response, error) {
	at := url.URL{Scheme: "https", Host: m.Address, Path: path}
	req, err := http.NewRequestWithContext(ctx, method, at.String(), nil)
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Body, req.ContentLength = io.NopCloser(body), body.Size()
	}
	resp, err := o.client.Do(req)
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.failed, m.Address)
	if err != nil {
		if ctx.Err() == nil { // else whoever asked has gone, which says nothing of the controller
			o.failed[m.Address] = time.Now()
		}
		return nil, fmt.Errorf("controller %s: %w", m.Name, err)
	}
	return resp, nil
}

// spare is why a controller is not asked to take anything now; nil: it is.
func (o *Others) spare(m replica.Member) error {
	if ago := time.Since(o.failedAt(m.Address)); ago < spared {
		return fmt.Errorf("controller %s did not answer %s ago", m.Name, ago.Round(time.Second))
	}
	return nil
}

func (o *Others) failedAt(address string) time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.failed[address]
}

// refused is why a controller did not take a file.
func refused(m replica.Member, resp *http.Response) error {
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 1000))
	return fmt.Errorf("controller %s: %s: %s", m.Name, resp.Status, strings.TrimSpace(string(text)))
}
