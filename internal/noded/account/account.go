// Package account says who a job's user is on this node: the account of that
// name if there is one, and the range of ids that the controller gave that user.
//
// It makes no accounts, and believes the controller as far as this machine does not
// contradict: a range has to lie where the node's administrator lets ranges be,
// away from all accounts, and is one user's at a time.
package account

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os/user"
	"sync"
	"time"

	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/internal/noded/reason"
	"gbatch/internal/units"
	"gbatch/oci/atomicfile"
	"gbatch/oci/userns"
)

// keep is how long an answer about an account holds.
const keep = time.Minute

// maxGroups bounds the groups of an account that a container has: the kernel
// takes some 300 lines of a map, and each group makes two.
const maxGroups = 100

// Accounts knows the users of one node.
type Accounts struct {
	file string
	from uint32
	log  *slog.Logger

	mu     sync.Mutex       // guards what follows
	given  map[string]given // by the user's name
	recent map[string]account

	lookup func(name string) (account, error) // tests replace it

	// Busy says whether a user has containers here that have not ended and may have
	// the range that begins with first. It is set before the first question.
	Busy func(name string, first uint32) bool
}

// given is what a user has or had here.
type given struct {
	First uint32  `json:"first,omitempty"` // of the range; 0: none by the controller's word
	Range *uint32 `json:"range,omitempty"` // number of the one that this node gave itself, before controllers did
	UID   uint32  `json:"uid"`             // of the account; 0: none was found so far
}

// has says whether a range is the user's, or was in containers of before.
func (g given) has(first, from uint32) bool {
	return g.First == first || g.Range != nil && from+*g.Range*userns.RangeSize == first
}

// account is one of the machine's; the zero value says that there is none.
type account struct {
	uid, gid uint32
	groups   []uint32
	until    time.Time
}

// Open reads who had which range before. Ranges may lie at from and above. With an error
// nobody had any.
func Open(file string, from uint32, log *slog.Logger) (*Accounts, error) {
	a := &Accounts{file: file, from: from, log: log, given: map[string]given{}, recent: map[string]account{}, lookup: machine}
	data, err := atomicfile.Read(file)
	if errors.Is(err, fs.ErrNotExist) {
		return a, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &a.given)
	}
	if err != nil {
		a.given = map[string]given{}
		return a, fmt.Errorf("read whose ids are whose: %w", err)
	}
	return a, nil
}

// Owner is who the containers of a user are. uid is who the controller knows by
// that name, if it knows anybody; project is the gid of the job's project, 0
// for none; first is the user's range, 0 for containers that began before
// controllers gave ranges.
//
// A user without an account here is the first of the range, and so is root. An
// account that was here and is not found is no reason to run as somebody else.
func (a *Accounts) Owner(name string, uid *uint32, project int, first uint32) (userns.Owner, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	acct, err := a.find(name)
	if err != nil {
		return userns.Owner{}, fmt.Errorf("find the account of %s: %w", name, err)
	}
	if uid != nil && acct.uid != 0 && acct.uid != *uid {
		return userns.Owner{}, reason.Errorf(job.Server, "user %s is number %d to the controller and %d on this node: their accounts must be the same", name, *uid, acct.uid)
	}
	had := a.given[name]
	if had.UID != 0 && acct.uid == 0 {
		return userns.Owner{}, reason.Errorf(job.Server, "the account of %s is not found on this node, where it was number %d: see its directory service", name, had.UID)
	}
	if err := a.checkAccount(name, acct, project); err != nil {
		return userns.Owner{}, err
	}
	if first != 0 {
		err = a.take(name, given{First: first, Range: had.Range, UID: acct.uid})
	} else if had.Range != nil {
		first = a.from + *had.Range*userns.RangeSize
	} else {
		err = reason.Errorf(job.Server, "the controller gives user %s no ids: it is older than this node and has to be upgraded first, or all ids from its idsFrom on are taken", name)
	}
	if err != nil {
		return userns.Owner{}, err
	}
	o := userns.Owner{UID: acct.uid, GID: acct.gid, Groups: acct.groups, First: first}
	if o.UID == 0 {
		o.UID = first
	}
	if o.GID == 0 {
		o.GID = first
	}
	if project > 0 {
		o.Groups = append([]uint32{uint32(project)}, o.Groups...)
	}
	return o, nil
}

// checkAccount refuses numbers that cannot be told from those of ranges.
func (a *Accounts) checkAccount(name string, acct account, project int) error {
	if project < 0 || project > units.MaxID {
		return reason.Errorf(job.Server, "%d is no group, as the gid of the job's project", project)
	}
	if acct.uid >= a.from && acct.uid < node.IDsEnd {
		return reason.Errorf(job.Server, "number %d of user %s lies where this node's ranges for containers do: set idsFrom beyond all accounts", acct.uid, name)
	}
	for _, gid := range append([]uint32{acct.gid, uint32(project)}, acct.groups...) {
		if gid >= a.from && gid < node.IDsEnd {
			return reason.Errorf(job.Server, "number %d of a group of user %s lies where this node's ranges for containers do: set idsFrom beyond all groups", gid, name)
		}
	}
	return nil
}

// take makes a range the user's here, durably. It may have been another's, whom
// this node gave it before, or to whom a controller that lost its records did:
// such a one has it for as long as their containers run.
func (a *Accounts) take(name string, want given) error {
	if want.First < a.from || want.First%userns.RangeSize != 0 || want.First > node.IDsEnd-userns.RangeSize {
		return reason.Errorf(job.Server, "the ids from %d on, which the controller gave user %s, are none that this node lets containers have: idsFrom is %d here and has to be the same in gctld.yaml", want.First, name, a.from)
	}
	had, known := a.given[name]
	if known && had.First == want.First && had.UID == want.UID {
		return nil
	}
	all := maps.Clone(a.given)
	for other, g := range all {
		if other == name || !g.has(want.First, a.from) {
			continue
		}
		if a.Busy(other, want.First) {
			return reason.Errorf(job.Server, "the ids of user %s are those of another user's containers on this node, which began before: they have to end first", name)
		}
		a.log.Warn("ids of a user become another's; files here that have them are to be given to their user", "first", want.First, "before", other, "now", name)
		if g.First == want.First {
			g.First = 0
		} else {
			g.Range = nil
		}
		all[other] = g
	}
	all[name] = want
	data, err := json.Marshal(all)
	if err == nil {
		err = atomicfile.WriteDurable(a.file, atomicfile.Sum(data))
	}
	if err != nil {
		return fmt.Errorf("remember the ids of %s: %w", name, err)
	}
	if known && !had.has(want.First, a.from) {
		before := had.First
		if before == 0 && had.Range != nil {
			before = a.from + *had.Range*userns.RangeSize
		}
		a.log.Warn("a user has other ids on this node than before", "user", name, "before", before, "now", want.First, "each", userns.RangeSize)
	}
	a.given = all
	return nil
}

func (a *Accounts) find(name string) (account, error) {
	if acct, ok := a.recent[name]; ok && time.Now().Before(acct.until) {
		return acct, nil
	}
	acct, err := a.lookup(name)
	if err != nil {
		return account{}, err
	}
	if len(a.recent) >= 1<<12 {
		clear(a.recent)
	}
	acct.until = time.Now().Add(keep)
	a.recent[name] = acct
	return acct, nil
}

// machine looks an account up in the machine's files and, as its C library is
// configured, in its directory service.
func machine(name string) (account, error) {
	u, err := user.Lookup(name)
	if errors.As(err, new(user.UnknownUserError)) {
		return account{}, nil
	}
	if err != nil {
		return account{}, err
	}
	var out account
	if out.uid, err = units.ParseID(u.Uid); err != nil || out.uid == 0 {
		return account{}, err
	}
	if out.gid, err = units.ParseID(u.Gid); err != nil {
		return account{}, err
	}
	ids, err := u.GroupIds()
	if err != nil {
		return account{}, err
	}
	for _, id := range ids {
		gid, err := units.ParseID(id)
		if err != nil {
			return account{}, err
		}
		if gid != 0 && gid != out.gid && len(out.groups) < maxGroups {
			out.groups = append(out.groups, gid)
		}
	}
	return out, nil
}
