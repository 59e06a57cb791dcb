// Package controllers has the routes by which several controllers are run: who they are,
// who joins and leaves, and who leads.
package controllers

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/ctld/site"
	"gbatch/internal/replica"
)

// Replicas are this controller's part among several.
type Replicas interface {
	Members() ([]replica.Member, error)
	Settle() error  // nil: those that Members gave before are agreed on
	Agreed() uint64 // the last entry that a majority is known to have
	Add(replica.Member) error
	Remove(name string) error
	Transfer(to string) error
}

// Members looks after the others while this controller leads.
type Members struct {
	Replicas
	self     string
	patience int64 // of its configuration, seconds
	log      *slog.Logger

	// Reach says whether somebody answers at an address. Set before Run.
	Reach func(ctx context.Context, address string) bool

	// Has says whether a member has all up to an entry; nil: it is asked for its Statement. Set before Run.
	Has func(ctx context.Context, address string, entry uint64) bool

	// Useless says that this controller cannot store anything, as its disk is full; nil: that is not
	// looked at. Set before Run.
	Useless func() bool

	// Own is what this controller says of itself, and Ask asks another one; nil: nothing is compared.
	// Set before Run.
	Own func() Statement
	Ask func(ctx context.Context, address string) (Statement, error)

	changes chan struct{}     // full while members are changed, or it is found what one needs
	joining map[string]uint64 // of those that do not count yet: the entry by which each was added, or a later one

	mu      sync.Mutex
	answers map[string]int       // how many times in a row a member could be reached
	told    map[string]Statement // what members said of themselves last
	mute    map[string]bool      // who did not say it when asked last, though its port may be open
	taken   map[string]progress
	own     Statement         // at that time
	differs map[string]string // what was logged of each last
}

// New is for the controller with this configuration.
func New(r Replicas, c site.Config, log *slog.Logger) *Members {
	return &Members{Replicas: r, self: c.Replica.Name, patience: int64(c.Replica.Patience), log: log, Reach: reachable,
		changes: make(chan struct{}, 1), joining: map[string]uint64{}, answers: map[string]int{}, told: map[string]Statement{}, taken: map[string]progress{}, differs: map[string]string{}}
}

// lookEvery is how often it is looked who can be reached, and steady how many times in a row make
// a new member one that counts: before, the others would wait for it.
const (
	lookEvery = time.Second
	steady    = 3
)

// askEvery is how often the others are asked about themselves. While one of them says nothing, though it can be reached, or lacks
// records, as after a start, they are asked each time that it is looked.
const askEvery = 10 * time.Second

// leastLead is how long a controller leads at least before it gives that up: the others' disks may
// be full, too.
const leastLead = time.Minute

// Run looks after the others until ctx is done.
func (m *Members) Run(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	var asked time.Time
	for began := time.Now(); ctx.Err() == nil; { // a tick may have come too
		m.look(ctx)
		if m.Ask != nil && (time.Since(asked) >= askEvery || m.comes()) {
			asked = time.Now()
			m.compare(ctx)
		}
		if m.Useless != nil && m.Useless() && time.Since(began) >= leastLead {
			m.resign()
			began = time.Now()
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

func (m *Members) look(ctx context.Context) {
	list, err := m.Replicas.Members()
	if err != nil {
		return // asked again
	}
	for _, x := range list {
		if x.Name == m.self {
			continue
		}
		n := m.reached(x.Name, m.Reach(ctx, x.Address))
		if x.Voter || n < steady || !m.caughtUp(ctx, x) {
			continue
		}
		x.Voter = true
		if err := m.Replicas.Add(x); err != nil {
			m.log.Warn("a controller that has joined does not count yet; it is tried again", "name", x.Name, "error", err)
			continue
		}
		m.log.Info("a controller has joined", "name", x.Name, "address", x.Address)
	}
}

// Add has another member take part, whose word does not count at first, and gives the entry that it needs before it votes.
func (m *Members) Add(name, address string) (entry uint64, err error) {
	m.changes <- struct{}{}
	defer func() { <-m.changes }()
	delete(m.joining, name)
	if err := m.Replicas.Add(replica.Member{Name: name, Address: address}); err != nil {
		return 0, err
	}
	m.joining[name] = m.Agreed()
	return m.joining[name], nil
}

// Remove has a member take part no longer.
func (m *Members) Remove(name string) error {
	m.changes <- struct{}{}
	defer func() { <-m.changes }()
	delete(m.joining, name)
	return m.Replicas.Remove(name)
}

// needs is the entry that a member needs before it votes. Where another controller added it, that is not known: a majority has
// a later one then, which stays the same, as the member hears only some time after this controller of what is agreed on.
func (m *Members) needs(name string) (entry uint64, ok bool) {
	m.changes <- struct{}{}
	defer func() { <-m.changes }()
	if entry, ok = m.joining[name]; !ok && m.Settle() == nil {
		entry, ok = m.Agreed(), true
		m.joining[name] = entry
	}
	return entry, ok
}

// caughtUp says whether a member that joins has the entry by which it was added: before that it votes for nobody. If its word
// counted by then, and another one were lost, those that are left could never have one lead.
func (m *Members) caughtUp(ctx context.Context, x replica.Member) bool {
	entry, ok := m.needs(x.Name)
	if !ok {
		return false
	}
	if m.Has != nil {
		return m.Has(ctx, x.Address, entry)
	}
	if m.Ask == nil {
		return true
	}
	s, err := m.Ask(ctx, x.Address)
	return err == nil && s.Applied >= entry
}

// resign lets another controller lead that follows and answers.
func (m *Members) resign() {
	list, err := m.list()
	if err != nil {
		return // asked again
	}
	for _, x := range list {
		if x.Name == m.self || !x.Counts || !x.Answers {
			continue
		}
		m.log.Warn("this controller can store nothing: another one is to lead", "name", x.Name)
		if err := m.Transfer(x.Name); err != nil {
			m.log.Warn("the lead was not transferred", "to", x.Name, "error", err)
			continue
		}
		return
	}
}

// reached notes whether a member answered, and says how many times in a row it has.
func (m *Members) reached(name string, ok bool) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.answers[name]++
	if !ok {
		m.answers[name] = 0
		delete(m.mute, name) // it was away, and is asked when it is back
	}
	return m.answers[name]
}

// comes says that a member said nothing when it was asked last or lacked records, and that not for long.
func (m *Members) comes() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, p := range m.taken { // any will do
		if m.answers[name] > 0 && !p.stuck && (m.mute[name] || p.behind > 0) {
			return true
		}
	}
	return false
}

func reachable(ctx context.Context, address string) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return false
	}
	_ = conn.Close() // it was only looked
	return true
}

// list is what is known of all controllers.
func (m *Members) list() ([]api.Controller, error) {
	all, err := m.Replicas.Members()
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []api.Controller
	for _, x := range all {
		c := api.Controller{Name: x.Name, Address: x.Address, Leads: x.Leads, Counts: x.Voter, Answers: x.Name == m.self || m.answers[x.Name] > 0 && !m.mute[x.Name]}
		c.Behind, c.Stuck = m.taken[x.Name].behind, m.taken[x.Name].stuck
		m.compared(&c)
		out = append(out, c)
	}
	return out, nil
}
