package access

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os/exec"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/sync/singleflight"

	"gbatch/internal/api"
	"gbatch/internal/ctld/notice"
	"gbatch/internal/ctld/site"
	"gbatch/internal/units"
)

// People knows the machine's users and groups: its files, and by getent and id
// what a directory service adds. Answers are kept for a minute.
type People struct {
	log *slog.Logger
	now func() time.Time
	run func(program string, args ...string) (string, error)

	nameless notice.Notice       // users' names cannot be looked up
	missing  notice.Notice       // a group of the rules is not there
	asking   singleflight.Group  // of many requests of one user, one asks
	programs *semaphore.Weighted // that run at once

	mu     sync.Mutex
	names  map[uint32]kept[string]
	uids   map[string]kept[*uint32]
	people map[string]kept[*uint32]  // the same, without those that could not be asked for
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

	programsAtOnce = 16 // each has a few descriptors
)

// NewPeople knows nobody yet.
func NewPeople(log *slog.Logger) *People {
	return &People{log: log, now: time.Now, run: runProgram, programs: semaphore.NewWeighted(programsAtOnce),
		nameless: notice.Notice{Log: log, Level: slog.LevelError, Text: "a user's name cannot be looked up: who is not known from before is refused", Over: "users' names can be looked up again"},
		missing:  notice.Notice{Log: log, Level: slog.LevelWarn, Text: "a group that the rules name is not on this machine"},
	}
}

func runProgram(program string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, program, args...).Output()
	return string(out), err
}

// ask runs a program when few others run.
func (p *People) ask(program string, args ...string) (string, error) {
	if err := p.programs.Acquire(context.Background(), 1); err != nil {
		return "", err
	}
	defer p.programs.Release(1)
	return p.run(program, args...)
}

// remember answers from m, or asks. The lock is not held while it asks.
func remember[K comparable, T any](p *People, m *map[K]kept[T], k K, ask func() T) T {
	v, _ := rememberSuccess(p, m, k, func() (T, error) { return ask(), nil })
	return v
}

// rememberSuccess is remember for a question that can fail; an error is not kept.
func rememberSuccess[K comparable, T any](p *People, m *map[K]kept[T], k K, ask func() (T, error)) (T, error) {
	p.mu.Lock()
	have, ok := (*m)[k]
	p.mu.Unlock()
	if ok && p.now().Before(have.until) {
		return have.value, nil
	}
	asked, err, _ := p.asking.Do(fmt.Sprintf("%p %v", m, k), func() (any, error) { return ask() })
	v, _ := asked.(T) // it is one
	if err != nil {
		return v, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if *m == nil || len(*m) >= maxPeople {
		*m = map[K]kept[T]{}
	}
	(*m)[k] = kept[T]{v, p.now().Add(keepPeople)}
	return v, nil
}

// name is a user's; a number that certainly has none is named after itself. It
// is an error if that cannot be found out: somebody must never become another
// user because a directory service, or a descriptor, was missing for a moment.
func (p *People) name(uid uint32) (string, *api.Error) {
	name, err := rememberSuccess(p, &p.names, uid, func() (string, error) {
		id := strconv.FormatUint(uint64(uid), 10)
		u, inFiles := user.LookupId(id)
		if inFiles == nil {
			return u.Username, nil
		}
		out, err := p.ask("getent", "passwd", id)
		name, _, _ := strings.Cut(out, ":")
		switch {
		case err == nil && name != "":
		case noSuchEntry(err), noSuchProgram(err) && errors.Is(inFiles, user.UnknownUserIdError(int(uid))):
			name = fmt.Sprintf("uid%d", uid)
		default:
			p.nameless.Happened("uid", uid, "error", fmt.Errorf("getent passwd %s: %w", id, cmp.Or(err, inFiles)))
			return "", errNoName
		}
		p.nameless.Ended()
		return name, nil
	})
	if err != nil {
		return "", api.Errorf(api.CodeUnavailable, "the controller's machine cannot say at the moment who user %d is", uid).
			WithHint("try again in a few seconds; if it stays so, tell your operator")
	}
	return name, nil
}

// errNoName is kept from callers, who are told what to do.
var errNoName = errors.New("no name")

// noSuchEntry says that getent looked everywhere and found nothing.
func noSuchEntry(err error) bool {
	exit, ok := errors.AsType[*exec.ExitError](err)
	return ok && exit.ExitCode() == 2
}

// noSuchProgram says that a machine has no getent: then its files are all there is.
func noSuchProgram(err error) bool {
	return errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist)
}

// UID is a user's number; nil: the machine has no account of that name, or cannot say.
// A node compares it with its own.
func (p *People) UID(name string) *uint32 {
	return remember(p, &p.uids, name, func() *uint32 {
		uid, _ := p.find(name) // what is kept for a minute here, Account asks again
		return uid
	})
}

// Account is UID for those who decide by it: it is an error if the number cannot be
// found out.
func (p *People) Account(name string) (*uint32, *api.Error) {
	uid, err := rememberSuccess(p, &p.people, name, func() (*uint32, error) { return p.find(name) })
	if err != nil {
		return nil, api.Errorf(api.CodeUnavailable, "the controller's machine cannot say at the moment whether it has an account %s", name).
			WithHint("try again in a few seconds; if it stays so, tell your operator")
	}
	return uid, nil
}

// find asks for an account by its name. Getent takes a number for that of an account,
// so what it says counts only if it is of that name.
func (p *People) find(name string) (*uint32, error) {
	u, inFiles := user.Lookup(name)
	text := ""
	if inFiles == nil {
		text = u.Uid
	} else {
		out, err := p.ask("getent", "passwd", "--", name)
		switch parts := strings.Split(out, ":"); {
		case err == nil && len(parts) > 2 && parts[0] == name:
			text = parts[2]
		case err == nil && len(parts) > 2, noSuchEntry(err), noSuchProgram(err) && errors.Is(inFiles, user.UnknownUserError(name)):
			return nil, nil
		default:
			return nil, cmp.Or(err, inFiles)
		}
	}
	n, err := units.ParseID(text)
	if err != nil {
		return nil, err
	}
	return &n, nil
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
		if _, err := strconv.ParseUint(name, 10, 64); err == nil && p.UID(name) == nil {
			return nil // to id it would be the number of somebody else's account
		}
		out, err := p.ask("id", "-G", "--", name)
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
		out, err := p.ask("getent", "group", "--", group)
		if parts := strings.Split(strings.TrimSpace(out), ":"); err == nil && len(parts) > 2 {
			return parts[2]
		}
		p.missing.Happened("group", group)
		return ""
	})
}
