package job

import (
	"fmt"
	"strconv"
	"strings"
)

// Number is a job's number for people: 1, 2, 3, ... in the order of
// acknowledgement, never given twice.
type Number uint64

// RankID names one container: rank Rank of try Attempt at index Task of a job.
// Task and Rank count from 0, Attempt from 1. Attempt is the fencing
// generation: of two RankIDs that differ only in it, the higher one is live.
type RankID struct {
	Job     Number `json:"job"`
	Task    uint32 `json:"task"`
	Attempt uint32 `json:"attempt"`
	Rank    uint32 `json:"rank"`
}

// String is "JOB_TASK.ATTEMPT.RANK", for example "123_0.1.0". It is safe as a
// file, cgroup and container name.
func (id RankID) String() string {
	return fmt.Sprintf("%d_%d.%d.%d", id.Job, id.Task, id.Attempt, id.Rank)
}

// ParseRankID is the inverse of RankID.String.
func ParseRankID(s string) (RankID, error) {
	bad := func() (RankID, error) {
		return RankID{}, fmt.Errorf("parse rank id %q: want JOB_TASK.ATTEMPT.RANK, as 123_0.1.0", s)
	}
	jobText, rest, ok := strings.Cut(s, "_")
	parts := strings.Split(rest, ".")
	if !ok || len(parts) != 3 {
		return bad()
	}
	n, err := strconv.ParseUint(jobText, 10, 64)
	if err != nil {
		return bad()
	}
	var v [3]uint32
	for i, p := range parts {
		x, err := strconv.ParseUint(p, 10, 32)
		if err != nil {
			return bad()
		}
		v[i] = uint32(x)
	}
	id := RankID{Job: Number(n), Task: v[0], Attempt: v[1], Rank: v[2]}
	if id.String() != s {
		return bad()
	}
	return id, nil
}
