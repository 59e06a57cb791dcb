package ports

import (
	"crypto/rand"
	"sync"
	"time"
)

// What links there are: each is good for once, and not for long.
const (
	linkLife  = time.Minute
	linksEach = 16 // of one user; then the oldest goes
)

// link is leave for one browser to come to a host name once.
type link struct {
	secret  string
	session string // whose browser it is
	host    string
	path    string // where it begins there
	until   time.Time
}

// links are kept in memory alone: what was not used when the controller ends is asked for
// again by a click. The zero value is ready.
type links struct {
	mu     sync.Mutex
	byUser map[string][]link // the oldest first
}

// add makes a link, and gives its secret.
func (l *links) add(user string, k link, now time.Time) string {
	k.secret, k.until = rand.Text(), now.Add(linkLife)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dropOld(now)
	if l.byUser == nil {
		l.byUser = map[string][]link{}
	}
	all := l.byUser[user]
	if len(all) >= linksEach {
		all = all[1:]
	}
	l.byUser[user] = append(all, k)
	return k.secret
}

// take uses a link up, if it is good for the host name.
func (l *links) take(secret, host string, now time.Time) (link, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dropOld(now)
	for user, all := range l.byUser { // at most one has it
		for i, k := range all {
			if k.secret == secret && k.host == host {
				l.byUser[user] = append(all[:i:i], all[i+1:]...)
				return k, true
			}
		}
	}
	return link{}, false
}

func (l *links) dropOld(now time.Time) {
	for user, all := range l.byUser {
		for len(all) > 0 && !now.Before(all[0].until) {
			all = all[1:]
		}
		if l.byUser[user] = all; len(all) == 0 {
			delete(l.byUser, user)
		}
	}
}
