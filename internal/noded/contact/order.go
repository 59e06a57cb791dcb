package contact

import (
	"gbatch/internal/api"
)

// ticket is what was known when a request was sent.
type ticket struct {
	seen      uint64
	epoch     int
	documents documents // that it said the node has
}

// ordering decides which answers say something new. Two requests may be in flight, so
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
