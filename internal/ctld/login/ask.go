package login

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"gbatch/internal/ctld/site"
	"gbatch/internal/reach"
)

// maxAnswer bounds what is read of one answer of the provider: its keys are some KiB.
const maxAnswer = 1 << 20

// newClient asks the provider. Where its addresses lead is its word, and it is asked
// as root on the controller's machine: within the site that is itself, by its address
// in the rules, and what the rules name beside it; elsewhere the internet.
func newClient(l *site.Login, s *seldom) *http.Client {
	return &http.Client{Timeout: askTime, Transport: &bounded{transportOf(l), s},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// transportOf connects to where a provider may lead; tests replace it.
var transportOf = func(l *site.Login) http.RoundTripper {
	t := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // it is one
	t.Proxy, t.DialContext = nil, reach.Guard{Hosts: append([]string{ownHost(l.Issuer)}, l.Hosts...)}.Dial
	t.DisableKeepAlives = true // each client has one of these, and asks seldom
	return t
}

// ownHost is HOST:PORT of an issuer.
func ownHost(issuer string) string {
	u, err := url.Parse(issuer)
	if err != nil {
		return ""
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// bounded reads no more than maxAnswer of an answer, and nothing of one that is none:
// strangers are told what became of the question, and are not to read by it what
// another service answers.
type bounded struct {
	guarded http.RoundTripper
	seldom  *seldom // nil: the same may be asked for at any time
}

func (b *bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	if b.seldom != nil && b.seldom.early(r.URL.String()) {
		return nil, errSeldom
	}
	transport := b.guarded
	if proxy, err := http.ProxyFromEnvironment(r); err == nil && proxy != nil {
		transport = http.DefaultTransport // where that leads is up to the proxy
	}
	resp, err := transport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	most := int64(maxAnswer)
	if r.Method == http.MethodGet && resp.StatusCode != http.StatusOK {
		most = 0
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{&limited{resp.Body, most, most > 0}, resp.Body}
	return resp, nil
}

// limited ends where the bound is reached, with an error if more was to be read.
type limited struct {
	from io.Reader
	left int64
	tell bool
}

func (l *limited) Read(b []byte) (int, error) {
	if l.left <= 0 {
		if l.tell {
			return 0, errTooLong
		}
		return 0, io.EOF
	}
	n, err := l.from.Read(b[:min(int64(len(b)), l.left)])
	l.left -= int64(n)
	return n, err
}

// plain is an error that may be told to anybody.
type plain string

func (p plain) Error() string { return string(p) }

const (
	errSeldom  = plain("it was asked a moment ago")
	errTooLong = plain("its answer is longer than 1 MiB")
)

// why says to a stranger why the provider cannot be asked: by the address that the
// rules have and in our words, since the others may have what a service inside of
// the site answered, or the name of one.
func why(err error) string {
	if p, ok := errors.AsType[plain](err); ok {
		return string(p)
	}
	if _, ok := errors.AsType[*reach.Error](err); ok {
		return "it names an address inside this site; an operator can allow that by login.hosts"
	}
	if t, ok := errors.AsType[net.Error](err); ok && t.Timeout() {
		return "it does not answer in time"
	}
	if _, ok := errors.AsType[*url.Error](err); ok {
		return "it cannot be reached"
	}
	return "its answer cannot be used"
}

// seldom lets the same be asked for only now and then.
type seldom struct {
	now func() time.Time

	mu    sync.Mutex
	asked map[string]time.Time // by URL: a provider has a few
}

func (s *seldom) early(address string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if now.Sub(s.asked[address]) < askEvery {
		return true
	}
	s.asked[address] = now
	return false
}

// tooSeldom says that keys were not fetched because they were a moment ago: then a
// token's key is none of the provider's. Its library keeps the text only.
func tooSeldom(err error) bool { return strings.Contains(err.Error(), string(errSeldom)) }
