package access

import (
	"context"
	"fmt"
	"log/slog"
	"os/exec"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"gbatch/internal/ctld/site"
)

// People knows the machine's users and groups: its files, and by getent and id
// what a directory service adds. Answers are kept for a minute.
type People struct {
	log *slog.Logger
	now func() time.Time
	run func(program string, args ...string) (string, error)

	mu     sync.Mutex
	names  map[uint32]kept[string]
	uids   map[string]kept[*uint32]
	groups map[string]kept[[]string] // gids, by user
	gids   map[string]kept[string]   // by group
}

type kept[T any] struct {
	value T
	until time.Time
}

const (
	keepPeople = time.Minute
	maxPeople  = 1 << 16 // then all is asked anew
)

// NewPeople knows nobody yet.
func NewPeople(log *slog.Logger) *People {
	return &People{log: log, now: time.Now, run: runProgram}
}

func runProgram(program string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, program, args...).Output()
	return string(out), err
}

// remember answers from m, or asks. The lock is not held while it asks.
func remember[K comparable, T any](p *People, m *map[K]kept[T], k K, ask func() T) T {
	p.mu.Lock()
	have, ok := (*m)[k]
	p.mu.Unlock()
	if ok && p.now().Before(have.until) {
		return have.value
	}
	v := ask()
	p.mu.Lock()
	defer p.mu.Unlock()
	if *m == nil || len(*m) >= maxPeople {
		*m = map[K]kept[T]{}
	}
	(*m)[k] = kept[T]{v, p.now().Add(keepPeople)}
	return v
}

// name is a user's; a number that has none is named after itself.
func (p *People) name(uid uint32) string {
	return remember(p, &p.names, uid, func() string {
		id := strconv.FormatUint(uint64(uid), 10)
		if u, err := user.LookupId(id); err == nil {
			return u.Username
		}
		if out, err := p.run("getent", "passwd", id); err == nil {
			if name, _, ok := strings.Cut(out, ":"); ok && name != "" {
				return name
			}
		}
		return fmt.Sprintf("uid%d", uid)
	})
}

// UID is a user's number; nil: the machine has no account of that name. A node
// compares it with its own.
func (p *People) UID(name string) *uint32 {
	return remember(p, &p.uids, name, func() *uint32 {
		text := ""
		if u, err := user.Lookup(name); err == nil {
			text = u.Uid
		} else if out, err := p.run("id", "-u", "--", name); err == nil {
			text = strings.TrimSpace(out)
		}
		n, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			return nil
		}
		return new(uint32(n))
	})
}

// Among says whether a user is one of those that are named, or in one of the
// groups.
func (p *People) Among(list site.Members, name string) bool {
	if slices.Contains(list, site.Member{User: name}) {
		return true
	}
	for _, m := range list {
		if m.Group != "" {
			if gid := p.gid(m.Group); gid != "" && slices.Contains(p.gidsOf(name), gid) {
				return true
			}
		}
	}
	return false
}

func (p *People) gidsOf(name string) []string {
	return remember(p, &p.groups, name, func() []string {
		out, err := p.run("id", "-G", "--", name)
		if err != nil {
			p.log.Debug("groups of a user not found", "user", name, "error", err)
		}
		return strings.Fields(out)
	})
}

func (p *People) gid(group string) string {
	return remember(p, &p.gids, group, func() string {
		if g, err := user.LookupGroup(group); err == nil {
			return g.Gid
		}
		out, err := p.run("getent", "group", "--", group)
		if parts := strings.Split(strings.TrimSpace(out), ":"); err == nil && len(parts) > 2 {
			return parts[2]
		}
		p.log.Warn("a group that the rules name is not on this machine", "group", group)
		return ""
	})
}
