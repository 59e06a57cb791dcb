package state

import (
	"encoding/json"
	"fmt"

	jsonv2 "github.com/go-json-experiment/json"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"gbatch/internal/job"
	"gbatch/sched"
)

// Line is one entry of a job's timeline, as stored under KindEvent.
type Line struct {
	Time    sched.Time `json:"t"`
	State   job.State  `json:"s,omitempty"` // entered, if it changed
	Message string     `json:"m,omitempty"`
}

// Kind is a family of records: the first byte of their keys.
type Kind byte

// The kinds. Records are the latest state of a thing, not a log of changes,
// but for events.
const (
	KindJob     Kind = 'j' // by Job: a job that is live or ended lately
	KindHistory Kind = 'h' // by Job: a job that ended long ago; the same value
	KindSpec    Kind = 's' // by Job: the native document
	KindSecret  Kind = 'k' // by Job: sealed registry credentials and secrets, deleted at the end
	KindEvent   Kind = 'e' // by Job and Seq: the timeline
	KindAttempt Kind = 'a' // by Job and Seq: attempts that have ended
	KindTasks   Kind = 'b' // by Job and Seq: the tasks of an array as asked (0), and their states (block Seq-1)
	KindLaunch  Kind = 'g' // by Job and Seq: what srun started in it, the last thousand
	KindUUID    Kind = 'i' // by Name (UUID): number of a job in history
	KindNode    Kind = 'n' // by Name
	KindPast    Kind = 'P' // by Name of the node: what became of it lately
	KindUsage   Kind = 'u' // by Name: the ledger's rows
	KindStored  Kind = 'v' // by Name of the user: what they have stored lately
	KindDay     Kind = 'd' // by Seq (day) and Name: what a user held in a project on a day that is over
	KindEnded   Kind = 'x' // by Seq (when, Unix milliseconds) and Job: jobs by their end, see Ended
	KindWindow  Kind = 'w' // by Name: advance reservations
	KindFloor   Kind = 'f' // by Job: lower numbers are not given to jobs any more
	KindThere   Kind = 'L' // the one with Job 0: when a controller was there, and whom it did not hear; see control/heard

	KindRestored Kind = 'r' // the one with Job 0: these records are from a backup, see Restored; read by the process around

	// Of the process around the controller, which it stores with these.
	KindToken   Kind = 't' // by Name (id): what is known of a token, not the token
	KindNodeKey Kind = 'c' // by Name of the node: the key that it joined with
	KindProject Kind = 'p' // by Name: projects that were made while the controller ran
	KindAudit   Kind = 'l' // by Seq: who changed what
	KindBusy    Kind = 'z' // by Seq: the same, of those who change very much
	KindKeyFile Kind = 'y' // by Name: a key file beside the store that the controller has used
	KindNotice  Kind = 'C' // by Job and Seq (its version): a change that services are to be told of
	KindIDs     Kind = 'o' // by Name of the user: the range of ids of their containers
)

// AuditKinds are those of the audit log.
var AuditKinds = [...]Kind{KindAudit, KindBusy}

// Record is one thing to be stored. A nil Value deletes it.
type Record struct {
	Kind  Kind
	Job   job.Number
	Seq   uint64
	Name  string
	Value []byte
}

// Point is how far records had come. Whoever was told one can ask later whether
// the records ever were there: those of an older copy that was put back were not.
type Point struct {
	Start   uint64 `json:"start"`   // of the controller, drawn for it
	Commits uint64 `json:"commits"` // of records, since there are any
}

// Encode is a value of our own types as records have it. These always encode.
func Encode(v any) []byte {
	out, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return out
}

// Encode is the job as it is stored under KindJob.
func (j *Job) Encode() []byte { return Encode(j.asStored()) }

// EncodeHistory is the job as it is stored under KindHistory, with all that
// there is to say of its tasks.
func (j *Job) EncodeHistory() []byte {
	if j.Tasks == nil {
		return j.Encode()
	}
	v := *j
	v.Tasks = j.Tasks.asHistory()
	return Encode(&v)
}

// DecodeJob reads a value stored under KindJob or KindHistory.
func DecodeJob(v []byte) (*Job, error) { return decodeJob(v, jsonv1.DefaultOptionsV1()) }

// decodeJob takes less than half of the time of encoding/json, and means the same: a start
// reads the records of all jobs, and nobody leads meanwhile.
func decodeJob(v []byte, options ...jsonv2.Options) (*Job, error) {
	j := new(Job)
	if err := jsonv2.Unmarshal(v, j, options...); err != nil {
		return nil, fmt.Errorf("decode job record: %w", err)
	}
	if j.Owner == nil || j.Request == nil || j.Request.Shape == nil || j.Number == 0 || (j.State.Active() && j.Attempt == nil) {
		return nil, fmt.Errorf("decode job record %d: fields are missing", j.Number)
	}
	var err error
	if j.Tasks, err = j.Tasks.fromHistory(); err != nil {
		return nil, fmt.Errorf("decode job record %d: %w", j.Number, err)
	}
	return j, nil
}

// DecodeNode reads a value stored under KindNode.
func DecodeNode(name string, v []byte) (*Node, error) {
	n := new(Node)
	if err := json.Unmarshal(v, n); err != nil {
		return nil, fmt.Errorf("decode node record %s: %w", name, err)
	}
	return n, nil
}

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

// Where says which record it is, for people.
func (r Record) Where() string {
	switch {
	case r.Job != 0:
		return fmt.Sprintf("record of job %d (kind %q)", r.Job, r.Kind)
	case r.Name != "":
		return fmt.Sprintf("record of %q (kind %q)", r.Name, r.Kind)
	}
	return fmt.Sprintf("record %d (kind %q)", r.Seq, r.Kind)
}
