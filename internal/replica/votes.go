package replica

import (
	"errors"
	"io"
	"syscall"

	"github.com/hashicorp/raft"
)

// RequestVote and RequestPreVote ask a member for its vote without saying who asks. The library refuses whoever
// is no voter by the last entry that the member has: where that is older than what made
// the candidate one, and nobody else has all entries, none could ever lead. It is safe: a candidate
// counts the votes of those that it knows. One that was removed is not voted for as long as
// somebody leads, and lacks entries then.

// RequestVote leaves out who asks, which the library takes for a candidate of an earlier version.
func (e *exchanges) RequestVote(id raft.ServerID, at raft.ServerAddress, args *raft.RequestVoteRequest, resp *raft.RequestVoteResponse) error {
	q := *args
	q.ID = nil
	return byNew(func() error { return e.NetworkTransport.RequestVote(id, at, &q, resp) })
}

// RequestPreVote puts the member that is asked in that place, which each knows.
func (e *exchanges) RequestPreVote(id raft.ServerID, at raft.ServerAddress, args *raft.RequestPreVoteRequest, resp *raft.RequestPreVoteResponse) error {
	q := *args
	q.ID = []byte(id)
	return byNew(func() error { return e.NetworkTransport.RequestPreVote(id, at, &q, resp) })
}

// TimeoutNow has a member stand for leader at once.
func (e *exchanges) TimeoutNow(id raft.ServerID, at raft.ServerAddress, args *raft.TimeoutNowRequest, resp *raft.TimeoutNowResponse) error {
	return byNew(func() error { return e.NetworkTransport.TimeoutNow(id, at, args, resp) })
}

// maxKept is how many connections to a member are kept for what comes next.
const maxKept = 3

// byNew asks again where a connection that was kept has ended, as its member was started anew since, and by a new one after all
// of those: the library does not, and the vote would be missing until the next election. Who is asked twice in a term answers alike.
func byNew(ask func() error) (err error) {
	for range maxKept + 1 {
		if err = ask(); !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) {
			return err
		}
	}
	return err
}
