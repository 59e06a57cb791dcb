package site

import (
	"fmt"
	"maps"
	"slices"

	"gbatch/internal/control/quota"
)

// PerUser bounds what one user has. unbounded: no bound; in Limits.Users 0 is
// what all others have.
type PerUser struct {
	Jobs         int64 `yaml:"jobs,omitempty"`            // that are not over; an array is one
	Tasks        int64 `yaml:"tasks,omitempty"`           // of arrays, that are not over
	Templates    int64 `yaml:"templates,omitempty"`       // jobs with a time table
	Dependencies int64 `yaml:"dependencies,omitempty"`    // of jobs that are not over
	StoredMiB    int64 `yaml:"storedMiB,omitempty"`       // documents and secrets of jobs that are not over
	DayMiB       int64 `yaml:"storedMiBPerDay,omitempty"` // stored in a day
	Tokens       int64 `yaml:"tokens,omitempty"`          // in force
	Connections  int64 `yaml:"connections,omitempty"`     // open
	Requests     int64 `yaml:"requests,omitempty"`        // open, long polls too
	Streams      int64 `yaml:"streams,omitempty"`         // logs, shells, ports and events that are open
	UploadedMiB  int64 `yaml:"uploadedMiB,omitempty"`     // in directories brought along with jobs
	Uploaded     int64 `yaml:"uploadedFiles,omitempty"`   // in those
	Mails        int64 `yaml:"mailsPerDay,omitempty"`     // sent about jobs

	Changes int64 `yaml:"changesPerSecond,omitempty"`
	Reads   int64 `yaml:"readsPerSecond,omitempty"` // lists count for ten
}

const unbounded = -1

func defaultPerUser() PerUser {
	return PerUser{Jobs: 50_000, Tasks: 200_000, Templates: 100, Dependencies: 100_000, StoredMiB: 256, DayMiB: 2048, Tokens: 100, Connections: 1024,
		Requests: 1024, Streams: 512, UploadedMiB: 10_240, Uploaded: 1_000_000, Mails: 500, Changes: 1000, Reads: 1000}
}

// perUserKeys are the bounds by their keys.
var perUserKeys = []struct {
	key string
	at  func(*PerUser) *int64
}{
	{"jobs", func(p *PerUser) *int64 { return &p.Jobs }},
	{"tasks", func(p *PerUser) *int64 { return &p.Tasks }},
	{"templates", func(p *PerUser) *int64 { return &p.Templates }},
	{"dependencies", func(p *PerUser) *int64 { return &p.Dependencies }},
	{"storedMiB", func(p *PerUser) *int64 { return &p.StoredMiB }},
	{"storedMiBPerDay", func(p *PerUser) *int64 { return &p.DayMiB }},
	{"tokens", func(p *PerUser) *int64 { return &p.Tokens }},
	{"connections", func(p *PerUser) *int64 { return &p.Connections }},
	{"requests", func(p *PerUser) *int64 { return &p.Requests }},
	{"streams", func(p *PerUser) *int64 { return &p.Streams }},
	{"uploadedMiB", func(p *PerUser) *int64 { return &p.UploadedMiB }},
	{"uploadedFiles", func(p *PerUser) *int64 { return &p.Uploaded }},
	{"mailsPerDay", func(p *PerUser) *int64 { return &p.Mails }},
	{"changesPerSecond", func(p *PerUser) *int64 { return &p.Changes }},
	{"readsPerSecond", func(p *PerUser) *int64 { return &p.Reads }},
}

// maxPerUser keeps sums and products of bounds far from overflow.
const maxPerUser = 1_000_000_000

func (l *Limits) checkUsers(bad func(path, format string, a ...any)) {
	for _, k := range perUserKeys {
		if n := *k.at(&l.PerUser); n != unbounded && (n < 1 || n > maxPerUser) {
			bad("limits.perUser."+k.key, "%d: use 1 to %d, or %d for no bound", n, maxPerUser, unbounded)
		}
		for _, name := range slices.Sorted(maps.Keys(l.Users)) {
			u := l.Users[name]
			if n := *k.at(&u); n < unbounded || n > maxPerUser {
				bad(fmt.Sprintf("limits.users.%s.%s", name, k.key), "%d: use 1 to %d, or %d for no bound", n, maxPerUser, unbounded)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(l.Users)) {
		if !peopleRule.MatchString(name) {
			bad("limits.users", "%q is no name of a user", name)
		}
	}
}

// Of is what a user may have. 0: no bound.
func (l *Limits) Of(user string) PerUser {
	out, own := l.PerUser, l.Users[user]
	for _, k := range perUserKeys {
		n := k.at(&out)
		if special := *k.at(&own); special != 0 {
			*n = special
		}
		*n = max(*n, 0)
	}
	return out
}

// quotas are the bounds of jobs, of each user and of those that have their own.
func (l *Limits) quotas() (each quota.Limits, users map[string]quota.Limits) {
	of := func(p PerUser) quota.Limits {
		return quota.Limits{Jobs: p.Jobs, Tasks: p.Tasks, Templates: p.Templates, Needs: p.Dependencies, Bytes: p.StoredMiB << 20, DayBytes: p.DayMiB << 20}
	}
	users = map[string]quota.Limits{}
	for name := range l.Users {
		users[name] = of(l.Of(name))
	}
	return of(l.Of("")), users
}
