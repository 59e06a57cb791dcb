package state

import (
	"encoding/json"
	"fmt"
)

// Encode is a value of our own types as records have it. These always encode.
func Encode(v any) []byte {
	out, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return out
}

// EncodeHistory is the job as it is stored under KindHistory, with all that
// there is to say of its tasks.
func (j *Job) EncodeHistory() []byte {
	if j.Tasks == nil {
		return Encode(j)
	}
	v := *j
	v.Tasks = j.Tasks.asHistory()
	return Encode(&v)
}

// DecodeJob reads a value stored under KindJob or KindHistory.
func DecodeJob(v []byte) (*Job, error) {
	j := new(Job)
	if err := json.Unmarshal(v, j); err != nil {
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
