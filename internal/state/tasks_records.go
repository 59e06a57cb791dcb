package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"gbatch/internal/job"
	"gbatch/internal/job/indexes"
)

// asHistory is the tasks as history has them.
func (t *Tasks) asHistory() *Tasks {
	return &Tasks{Failures: t.Failures, First: t.First, Image: t.Image, TaskHistory: &TaskHistory{
		Asked: &t.Array.Tasks, Succeeded: t.In(TaskSucceeded).String(), Failed: t.In(TaskFailed).String(),
		Missed: t.In(TaskMissed).String(), Cancelled: t.In(TaskCancelled).String(),
	}}
}

// fromHistory is the inverse. What is not of history is left as it is: a load
// completes it from the array's own records.
func (t *Tasks) fromHistory() (*Tasks, error) {
	if t == nil || t.TaskHistory == nil || t.Asked == nil {
		return t, nil
	}
	h := t.TaskHistory
	a, err := NewArray(*h.Asked)
	if err != nil {
		return nil, err
	}
	out := NewTasks(a)
	out.Failures, out.First, out.Image = t.Failures, t.First, t.Image
	for text, state := range map[string]TaskState{h.Succeeded: TaskSucceeded, h.Failed: TaskFailed, h.Cancelled: TaskCancelled, h.Missed: TaskMissed} {
		if text == "" {
			continue
		}
		set, err := indexes.Parse(text)
		if err != nil || !set.Within(a.All) {
			return nil, fmt.Errorf("its tasks %q are not among %q", text, h.Asked.Indexes)
		}
		out.setAll(set, state)
	}
	out.share()
	out.changed, out.moved = nil, nil
	return out, nil
}

// setAll is set for tasks by index.
func (t *Tasks) setAll(indexes indexes.Set, s TaskState) {
	for _, r := range indexes {
		for i := r.First; i <= r.Last; i++ {
			p, _ := t.Position(i)
			t.Set(p, s)
		}
	}
}

// Changed says whether a clone differs from what it was made of.
func (t *Tasks) Changed() bool { return len(t.changed) > 0 }

// TakeChanges ends the changes of a clone. It returns the indexes of the tasks that
// changed and, if they are wanted, the records that store these changes of job n.
func (t *Tasks) TakeChanges(n job.Number, records bool) (indexes []int, blocks []Record) {
	t.share()
	if records {
		for _, k := range t.changed {
			blocks = append(blocks, Record{Kind: KindTasks, Job: n, Seq: uint64(k) + 1, Value: t.blocks[k].encode(min(blockSize, t.Len()-k*blockSize))})
		}
	}
	indexes = t.moved
	for i, at := range indexes {
		indexes[i] = t.Index(at)
	}
	t.changed, t.moved = nil, nil
	return indexes, blocks
}

// Dropped deletes the records of an array that moves to history.
func (t *Tasks) Dropped(n job.Number) []Record {
	out := []Record{{Kind: KindTasks, Job: n}}
	for k, b := range t.blocks {
		if b != nil {
			out = append(out, Record{Kind: KindTasks, Job: n, Seq: uint64(k) + 1})
		}
	}
	return out
}

// encode writes one letter for each task.
func (b *block) encode(n int) []byte {
	out := make([]byte, n)
	for i := range out {
		if out[i] = byte(b[i]); b[i] == TaskPending {
			out[i] = '.'
		}
	}
	return out
}

// InRecord is what the record of the job says of its tasks.
func (t *Tasks) InRecord() *Tasks {
	return &Tasks{Failures: t.Failures, First: t.First, Image: t.Image}
}

// LoadTasks puts the tasks of an array together from its records, in any order,
// and what its job's record says.
func LoadTasks(records []Record, word *Tasks) (*Tasks, error) {
	var asked *job.Tasks
	for _, r := range records {
		if r.Seq == 0 {
			asked = new(job.Tasks)
			if err := json.Unmarshal(r.Value, asked); err != nil {
				return nil, fmt.Errorf("decode its tasks: %w", err)
			}
		}
	}
	if asked == nil {
		return nil, errors.New("the record of its tasks is missing")
	}
	a, err := NewArray(*asked)
	if err != nil {
		return nil, err
	}
	t := NewTasks(a)
	t.Failures, t.First, t.Image = word.Failures, word.First, word.Image
	for _, r := range records {
		k := int(r.Seq) - 1
		if k < 0 {
			continue
		}
		if k >= len(t.blocks) || len(r.Value) != min(blockSize, t.Len()-k*blockSize) || len(bytes.Trim(r.Value, ".lsfcd")) > 0 {
			return nil, fmt.Errorf("the record of block %d of its tasks is malformed", k)
		}
		for i, letter := range r.Value {
			if letter != '.' {
				t.Set(k*blockSize+i, TaskState(letter))
			}
		}
	}
	t.share()
	t.changed, t.moved = nil, nil
	return t, nil
}
