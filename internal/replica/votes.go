package replica

import "github.com/hashicorp/raft"

// RequestVote and RequestPreVote ask a member for its vote without saying who asks. The library refuses whoever
// is no voter by the last entry that the member has: where that is older than what made
// the candidate one, and nobody else has all entries, none could ever lead. It is safe: a candidate
// counts the votes of those that it knows. One that was removed is not voted for as long as
// somebody leads, and lacks entries then.

// RequestVote leaves out who asks, which the library takes for a candidate of an earlier version.
func (e *exchanges) RequestVote(id raft.ServerID, at raft.ServerAddress, args *raft.RequestVoteRequest, resp *raft.RequestVoteResponse) error {
	q := *args
	q.ID = nil
	return e.NetworkTransport.RequestVote(id, at, &q, resp)
}

// RequestPreVote puts the member that is asked in that place, which each knows.
func (e *exchanges) RequestPreVote(id raft.ServerID, at raft.ServerAddress, args *raft.RequestPreVoteRequest, resp *raft.RequestPreVoteResponse) error {
	q := *args
	q.ID = []byte(id)
	return e.NetworkTransport.RequestPreVote(id, at, &q, resp)
}
