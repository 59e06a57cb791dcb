// Package account says who a job's user is on this node: the account of that
// name if there is one, and a range of ids that belong to that user alone.
//
// It makes no accounts and asks nobody but this machine. The caller keeps the
// file in which it remembers what it gave to whom.
package account

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"maps"
	"os"
	"os/user"
	"strconv"
	"sync"
	"time"

	"gbatch/internal/job"
	"gbatch/internal/noded/reason"
	"gbatch/oci/atomicfile"
	"gbatch/oci/userns"
)

// end is where the ranges end: beyond it programs take ids for negative.
const end = 0x7fff0000

// keep is how long an answer about an account holds.
const keep = time.Minute

// maxGroups bounds the groups of an account that a container has: the kernel
// takes some 300 lines of a map, and each group makes two.
const maxGroups = 100

// Accounts knows the users of one node.
type Accounts struct {
	file  string
	first uint32

	mu     sync.Mutex       // guards what follows
	given  map[string]given // by the user's name
	recent map[string]account

	lookup func(name string) (account, error) // tests replace it
}

// given is what a user was given, for ever: files may have those ids.
type given struct {
	Range uint32 `json:"range"` // number of it, from 0 on
	UID   uint32 `json:"uid"`   // of the account; 0: none was found so far
}

// account is one of the machine's; the zero value says that there is none.
type account struct {
	uid, gid uint32
	groups   []uint32
	until    time.Time
}

// Open reads what was given before. Ranges begin at first.
func Open(file string, first uint32) (*Accounts, error) {
	a := &Accounts{file: file, first: first, given: map[string]given{}, recent: map[string]account{}, lookup: machine}
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return a, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &a.given)
	}
	if err != nil {
		return nil, fmt.Errorf("read whose ids are whose: %w", err)
	}
	return a, nil
}

// Owner is who the containers of a user are. uid is who the controller knows by
// that name, if it knows anybody; project is the gid of the job's project, 0
// for none.
//
// A user without an account here is the first of a range, and so is root. An
// account that was here and is not found is no reason to run as somebody else.
func (a *Accounts) Owner(name string, uid *uint32, project int) (userns.Owner, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	acct, err := a.find(name)
	if err != nil {
		return userns.Owner{}, fmt.Errorf("find the account of %s: %w", name, err)
	}
	if uid != nil && acct.uid != 0 && acct.uid != *uid {
		return userns.Owner{}, reason.Errorf(job.Server, "user %s is number %d to the controller and %d on this node: their accounts must be the same", name, *uid, acct.uid)
	}
	had, known := a.given[name]
	if known && had.UID != 0 && acct.uid == 0 {
		return userns.Owner{}, reason.Errorf(job.Server, "the account of %s is not found on this node, where it was number %d: see its directory service", name, had.UID)
	}
	if acct.uid >= a.first && acct.uid < end {
		return userns.Owner{}, reason.Errorf(job.Server, "number %d of user %s lies where this node's ranges for containers do: set idsFrom beyond all accounts", acct.uid, name)
	}
	if !known || had.UID != acct.uid {
		if had, err = a.give(name, acct, had, known); err != nil {
			return userns.Owner{}, err
		}
	}
	first := a.first + had.Range*userns.RangeSize
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

// give finds a range that nobody has and remembers it. Nodes begin to look at
// the same number, so that a user mostly has the same one on all of them.
func (a *Accounts) give(name string, acct account, had given, known bool) (given, error) {
	ranges := (end - a.first) / userns.RangeSize
	if !known {
		taken := map[uint32]bool{}
		for _, g := range a.given {
			taken[g.Range] = true
		}
		if len(taken) >= int(ranges) {
			return given{}, fmt.Errorf("give %s ids: all %d ranges are taken", name, ranges)
		}
		had.Range = acct.uid % ranges
		if acct.uid == 0 {
			h := fnv.New32a()
			h.Write([]byte(name))
			had.Range = h.Sum32() % ranges
		}
		for taken[had.Range] {
			had.Range = (had.Range + 1) % ranges
		}
	}
	had.UID = acct.uid
	all := maps.Clone(a.given)
	all[name] = had
	data, err := json.Marshal(all)
	if err == nil {
		err = atomicfile.WriteDurable(a.file, data)
	}
	if err != nil {
		return given{}, fmt.Errorf("remember the ids of %s: %w", name, err)
	}
	a.given = all
	return had, nil
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
	if out.uid, err = number(u.Uid); err != nil || out.uid == 0 {
		return account{}, err
	}
	if out.gid, err = number(u.Gid); err != nil {
		return account{}, err
	}
	ids, err := u.GroupIds()
	if err != nil {
		return account{}, err
	}
	for _, id := range ids {
		gid, err := number(id)
		if err != nil {
			return account{}, err
		}
		if gid != 0 && gid != out.gid && len(out.groups) < maxGroups {
			out.groups = append(out.groups, gid)
		}
	}
	return out, nil
}

func number(s string) (uint32, error) {
	n, err := strconv.ParseUint(s, 10, 32)
	return uint32(n), err
}
