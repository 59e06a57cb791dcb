package transfer

import (
	"context"
	"io"
	"net/http"
)

// A server of objects may be anybody's. Of what it lists as much is taken as a
// list of maxObjects needs, and it has to come to something.
const (
	maxEmpty     = 100      // pages that bring nothing
	perPage      = 10       // objects on each of the others, on average
	maxPageBytes = 16 << 20 // of one page; with the longest names it is a quarter of that
	maxAnswer    = 1 << 20  // bytes of an answer that is neither a list nor an object
	maxHeader    = 64 << 10
	maxCalled    = 1 << 10 // bytes of what a server calls an object, a version of it or what has come of it
)

// listing bounds the requests that are made for one list.
type listing struct {
	pages   int
	objects int // that came with them
}

type listingKey struct{}

func withListing(ctx context.Context) (context.Context, *listing) {
	l := &listing{}
	return context.WithValue(ctx, listingKey{}, l), l
}

// contentKey marks requests for an object, which is as long as it is.
type contentKey struct{}

// bounded keeps to the bounds of a list what is asked for one, and bounds what else is
// no object. The requests of a list come one after the other.
type bounded struct{ http.RoundTripper }

func (t bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	l, ok := r.Context().Value(listingKey{}).(*listing)
	if !ok {
		resp, err := t.RoundTripper.RoundTrip(r)
		if err == nil && r.Context().Value(contentKey{}) == nil {
			resp.Body = &page{resp.Body, maxAnswer, fail(TooLarge, "an answer of the server has more than %d KiB", maxAnswer>>10)}
		}
		return resp, err
	}
	if l.pages++; l.pages > maxEmpty+l.objects/perPage {
		return nil, fail(TooLarge, "the server lists %d objects on %d pages, and goes on", l.objects, l.pages-1)
	}
	resp, err := t.RoundTripper.RoundTrip(r)
	if err == nil {
		resp.Body = &page{resp.Body, maxPageBytes, fail(TooLarge, "a page of the server's list has more than %d MiB", maxPageBytes>>20)}
	}
	return resp, err
}

// page is the body of an answer up to a bound.
type page struct {
	io.ReadCloser
	left int
	over *Error // when there is more
}

func (p *page) Read(b []byte) (int, error) {
	if p.left <= 0 {
		return 0, p.over
	}
	n, err := p.ReadCloser.Read(b[:min(len(b), p.left)])
	p.left -= n
	return n, err
}

// shortNames refuses what a server calls something if that would fill the memory of
// whoever keeps many of them.
func shortNames(names ...string) error {
	for _, n := range names {
		if len(n) > maxCalled {
			return fail(Invalid, "the server uses names of more than %d KiB", maxCalled>>10)
		}
	}
	return nil
}
