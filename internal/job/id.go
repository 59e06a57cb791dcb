package job

import (
	"fmt"
	"strconv"
)

// Number is a job's number for people: 1, 2, 3, ... in the order of
// acknowledgement, never given twice.
type Number uint64

// ParseNumber reads a job number as people type it.
func ParseNumber(s string) (Number, bool) {
	n, err := strconv.ParseUint(s, 10, 64)
	return Number(n), err == nil && n > 0 && len(s) <= 19
}

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
	var id RankID
	if _, err := fmt.Sscanf(s, "%d_%d.%d.%d", &id.Job, &id.Task, &id.Attempt, &id.Rank); err != nil || id.String() != s {
		return RankID{}, fmt.Errorf("parse rank id %q: want JOB_TASK.ATTEMPT.RANK, as 123_0.1.0", s)
	}
	return id, nil
}
