package ssh

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// Domain ends the names by which ssh knows jobs.
const Domain = ".gbatch"

// jobUser is the user that ssh names for the job's own; any other is one of the
// image.
const jobUser = "job"

// Host is what a name such as 12.gbatch stands for.
type Host struct {
	Job  string // as people type it: number, task of an array, UUID or its beginning
	Rank int
}

// ranked is a job's number, or a task's, with a rank. A UUID has no name of this
// form that could be a job's number with a rank: its first part has eight digits.
var ranked = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([0-9]{1,7}(?:_[0-9]+)?|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})-([0-9]{1,5})$`)
})

// ParseHost reads the name that a user gave to ssh: 12.gbatch, 12-1.gbatch for
// rank 1 of job 12, 12_3.gbatch for a task of an array.
func ParseHost(name string) (Host, error) {
	id := strings.TrimSuffix(strings.ToLower(name), Domain)
	if m := ranked().FindStringSubmatch(id); m != nil {
		rank, err := strconv.Atoi(m[2])
		return Host{m[1], rank}, err
	}
	if id == "" || strings.ContainsAny(id, "/.:@ ") {
		return Host{}, fmt.Errorf("%q names no job: want JOB%s, or JOB-RANK%s, as 12%s and 12-1%s", name, Domain, Domain, Domain, Domain)
	}
	return Host{Job: id}, nil
}
