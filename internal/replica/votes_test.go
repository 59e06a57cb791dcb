package replica

import (
	"testing"

	"github.com/hashicorp/raft"

	"gbatch/internal/state"
)

// TestNewMemberIsElected: of four, one missed that the newest takes part, and one is lost for good. Of the three
// that are left only the newest has the last entry, and leads.
func TestNewMemberIsElected(t *testing.T) {
	t.Parallel()
	a, b, c, d, all := four(t)
	for _, m := range []*member{b, c} {
		m.start()
		takesPart(t, m, all...)
	}
	b.stop()
	d.start()
	takesPart(t, d, all...)
	var rest *member
	until(t, "d alone of those that are left has an entry", func() bool {
		for _, m := range []*member{a, c} {
			if m.r == nil {
				m.start()
			}
		}
		l, lead := leader(t, a, c, d)
		if rest = a; l == a {
			rest = c
		}
		had := rest.r.raft.LastIndex()
		rest.stop()
		_ = lead.Store.Commit([]state.Record{jobRecord(0)}) // nobody agrees
		for _, m := range []*member{a, c} {
			m.stop()
		}
		return d.r.raft.LastIndex() > had
	})
	b.start()
	rest.start()
	_, lead := leader(t, b, rest, d)
	if err := lead.Store.Commit([]state.Record{jobRecord(1)}); err != nil {
		t.Fatal(err)
	}
}

// TestVoteOfOneStartedAnew: a member is asked for its vote though it was started anew since, and a connection from before was kept.
func TestVoteOfOneStartedAnew(t *testing.T) {
	t.Parallel()
	a, b := newMember(t, "a"), newMember(t, "b")
	for _, m := range []*member{a, b} {
		m.start()
		defer m.stop()
	}
	for range 2 {
		id, at := raft.ServerID(b.name), raft.ServerAddress(b.address)
		if err := a.r.trans.RequestPreVote(id, at, &raft.RequestPreVoteRequest{RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax}}, new(raft.RequestPreVoteResponse)); err != nil {
			t.Error(err)
		}
		if err := a.r.trans.RequestVote(id, at, &raft.RequestVoteRequest{RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax}}, new(raft.RequestVoteResponse)); err != nil {
			t.Error(err)
		}
		b.stop()
		b.start()
	}
}
