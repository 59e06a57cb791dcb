package replica

import (
	"context"
	"errors"
	"net"
	"syscall"
	"time"

	"github.com/hashicorp/raft"
)

// callsInPatience is how often a leader whose connection ended is called again while others would wait for it.
const callsInPatience = 40

// noticed is a connection from another member. Its end is told, as the other one may have ended.
type noticed struct {
	net.Conn
	ended chan<- struct{}
}

func (c noticed) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err != nil {
		select {
		case c.ended <- struct{}{}:
		default: // it is looked anyway
		}
	}
	return n, err
}

// Accept takes a connection from another member.
func (s stream) Accept() (net.Conn, error) {
	c, err := s.Listener.Accept()
	if err == nil {
		c = noticed{c, s.ended}
	}
	return c, err
}

// watch looks, whenever a connection from another member has ended, whether who leads is gone, until ctx is done.
func (r *Replica) watch(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.ended:
			r.succeed(ctx, time.Now())
		}
	}
}

// succeed has this member stand for leader at once, without the patience for silent ones, where nobody listens any more at
// the address of who leads. Members would take each other's votes, and the next election comes after their patience: so
// the first by name of those that run stands, however long its disk takes for a vote, and another one where that one lacks an entry.
func (r *Replica) succeed(ctx context.Context, since time.Time) {
	select {
	case <-r.lacks: // of an earlier election
	default:
	}
	leader, before, ok := r.heir()
	if !ok || !r.refuses(ctx, leader.Name, leader.Address, since) {
		return
	}
	if !rest(ctx, time.Until(since.Add(time.Duration(1+len(before))*r.patience()/4))) || r.anyRuns(before) && !r.standsInVain(ctx) {
		return
	}
	// One that is alive has called again by now, even if it cannot be reached from here.
	if !r.silent(leader.Name, since) {
		return
	}
	r.cfg.Log.Info("the controller that led has ended: this one stands for it", "leader", leader.Name)
	self := raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(r.cfg.Name), Addr: []byte(r.cfg.Address)}
	err := r.trans.TimeoutNow(raft.ServerID(r.cfg.Name), raft.ServerAddress(r.cfg.Address), &raft.TimeoutNowRequest{RPCHeader: self}, &raft.TimeoutNowResponse{})
	if err != nil {
		r.cfg.Log.Debug("not stood for leader", "error", err) // the usual election comes
	}
}

// heir tells who leads, and which of the others whose word counts come before this one. False: nobody else leads, or this
// one's word does not count.
func (r *Replica) heir() (leader Member, before []Member, ok bool) {
	members, err := r.Members()
	if err != nil {
		return Member{}, nil, false
	}
	for _, m := range members {
		switch {
		case m.Leads:
			leader = m
		case m.Name == r.cfg.Name:
			ok = m.Voter
		case m.Voter && m.Name < r.cfg.Name:
			before = append(before, m)
		}
	}
	return leader, before, ok && leader.Name != ""
}

// anyRuns says whether one of some members can be reached.
func (r *Replica) anyRuns(list []Member) bool {
	for _, m := range list {
		if c, err := r.cfg.Dial(m.Address, r.patience()/4); err == nil {
			_ = c.Close() // nothing was said
			return true
		}
	}
	return false
}

// standsInVain waits for as long as silence is borne whether a member stands that lacks an entry which this one has: it gets no vote
// from here.
func (r *Replica) standsInVain(ctx context.Context) bool {
	select {
	case <-r.lacks:
		return true
	case <-ctx.Done():
	case <-time.After(r.patience()):
	}
	return false
}

// asked notes of one that stands whether it lacks an entry.
func (r *Replica) asked(by raft.RequestVoteRequest) {
	if by.LastLogIndex >= r.raft.LastIndex() {
		return
	}
	select {
	case r.lacks <- struct{}{}:
	default: // it is known
	}
}

// refuses says whether the machine of who leads says that nobody listens at its address. Until it does, or something
// comes from who leads, it is called again while the usual patience lasts: a process that ends may still have its listener.
func (r *Replica) refuses(ctx context.Context, leader, address string, since time.Time) bool {
	for r.silent(leader, since) && time.Since(since) < r.patience() {
		c, err := r.cfg.Dial(address, r.patience())
		if err == nil {
			_ = c.Close() // nothing was said
		}
		if errors.Is(err, syscall.ECONNREFUSED) {
			return true
		}
		if !rest(ctx, r.patience()/callsInPatience) {
			return false
		}
	}
	return false
}

// silent says that nothing came from who leads since then, and that nobody else is known to lead.
func (r *Replica) silent(leader string, since time.Time) bool {
	now := r.Leader()
	return r.raft.State() == raft.Follower && (now == "" || now == leader) && r.raft.LastContact().Before(since)
}

// rest waits. False: ctx is done.
func rest(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
