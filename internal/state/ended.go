package state

import (
	"encoding/json"
	"fmt"

	"gbatch/internal/job"
	"gbatch/sched"
)

// Ended is what a record of KindEnded says of a job: enough to tell whether
// somebody asks for it without reading the job.
type Ended struct {
	At      sched.Time `json:"-"`
	Number  job.Number `json:"-"`
	User    string     `json:"u"`
	Project string     `json:"p"`
	Name    string     `json:"n,omitempty"`
	State   job.State  `json:"s"`
	Reason  job.Reason `json:"r,omitempty"`
	Array   job.Number `json:"a,omitempty"` // of a task
}

// EndRecord is the record of KindEnded of a job that is over.
func (j *Job) EndRecord() Record {
	v := Encode(Ended{User: j.Owner.User, Project: j.Owner.Project, Name: j.Name, State: j.State, Reason: j.Reason, Array: j.Parent})
	return Record{Kind: KindEnded, Seq: uint64(j.Ended), Job: j.Number, Value: v}
}

// DecodeEnded reads a record of KindEnded.
func DecodeEnded(r Record) (Ended, error) {
	e := Ended{At: sched.Time(r.Seq), Number: r.Job}
	if err := json.Unmarshal(r.Value, &e); err != nil {
		return e, fmt.Errorf("decode end of job %d: %w", r.Job, err)
	}
	return e, nil
}

// IndexEnded is the record of KindEnded that goes with a job as it is stored
// under KindJob or KindHistory; false for one that is not over.
func IndexEnded(r Record) (Record, bool, error) {
	j, err := DecodeJob(r.Value)
	if err != nil || !j.State.Final() {
		return Record{}, false, err
	}
	return j.EndRecord(), true, nil
}
