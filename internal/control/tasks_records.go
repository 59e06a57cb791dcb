package control

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"gbatch/internal/job"
)

// An array's states are stored apart from its job, in blocks, so that the end of
// a task writes little however many tasks there are. In history, where nothing
// changes any more, they are part of the job's record.

// tasksWord is what a job's record says of its tasks.
type tasksWord struct {
	Failures int      `json:"failures,omitempty"`
	First    []string `json:"first,omitempty"`

	// In history only:
	Asked     *job.Tasks `json:"asked,omitempty"`
	Succeeded string     `json:"succeeded,omitempty"`
	Failed    string     `json:"failed,omitempty"`
	Missed    string     `json:"missed,omitempty"`
	Cancelled string     `json:"cancelled,omitempty"`
}

func (t *Tasks) word() *tasksWord {
	if t == nil {
		return nil
	}
	return &tasksWord{Failures: t.Failures, First: t.First}
}

// history is all that there is to say.
func (t *Tasks) history() *tasksWord {
	w := t.word()
	if w != nil {
		w.Asked = &t.Tasks
		w.Succeeded, w.Failed, w.Cancelled = t.In(TaskSucceeded).String(), t.In(TaskFailed).String(), t.In(TaskCancelled).String()
		w.Missed = t.In(TaskMissed).String()
	}
	return w
}

// tasks is the inverse. Without history it has the counts that a load
// completes.
func (w *tasksWord) tasks() (*Tasks, error) {
	if w == nil {
		return nil, nil
	}
	if w.Asked == nil {
		return &Tasks{Failures: w.Failures, First: w.First}, nil
	}
	a, err := newArray(*w.Asked)
	if err != nil {
		return nil, err
	}
	t := newTasks(a)
	t.Failures, t.First = w.Failures, w.First
	for text, state := range map[string]TaskState{w.Succeeded: TaskSucceeded, w.Failed: TaskFailed, w.Cancelled: TaskCancelled, w.Missed: TaskMissed} {
		if text == "" {
			continue
		}
		set, err := job.ParseIndexes(text)
		if err != nil || !set.Within(a.All) {
			return nil, fmt.Errorf("its tasks %q are not among %q", text, w.Asked.Indexes)
		}
		t.setAll(set, state)
	}
	t.share()
	t.changed, t.moved = nil, nil
	return t, nil
}

// setAll is set for tasks by index.
func (t *Tasks) setAll(indexes job.Indexes, s TaskState) {
	for _, r := range indexes {
		for i := r.First; i <= r.Last; i++ {
			p, _ := t.position(i)
			t.set(p, s)
		}
	}
}

// recordArray stores what was asked of an array, once.
func (c *Controller) recordArray(j *Job) {
	if j.Tasks == nil {
		return
	}
	c.storeTasks(j.Number, j.Tasks) // what is known from the beginning
	if c.cfg.NoRecords {
		return
	}
	v, err := json.Marshal(j.Tasks.Tasks)
	must(err)
	c.record(Record{Kind: KindTasks, Job: j.Number, Value: v})
}

// storeTasks records the blocks that changed, tells those who wait for tasks,
// and forgets what has changed.
func (c *Controller) storeTasks(n job.Number, t *Tasks) {
	c.tellTasks(n, t)
	t.share()
	for _, k := range t.changed {
		if !c.cfg.NoRecords {
			c.record(Record{Kind: KindTasks, Job: n, Seq: uint64(k) + 1, Value: t.blocks[k].encode(min(blockSize, t.Len()-k*blockSize))})
		}
	}
	t.changed, t.moved = nil, nil
}

// dropTasks deletes the records of an array that moves to history.
func (c *Controller) dropTasks(j *Job) {
	c.record(Record{Kind: KindTasks, Job: j.Number})
	for k, b := range j.Tasks.blocks {
		if b != nil {
			c.record(Record{Kind: KindTasks, Job: j.Number, Seq: uint64(k) + 1})
		}
	}
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

// loadTasks puts the tasks of an array together from its records, in any order,
// and what its job's record says.
func loadTasks(records []Record, word *Tasks) (*Tasks, error) {
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
	a, err := newArray(*asked)
	if err != nil {
		return nil, err
	}
	t := newTasks(a)
	t.Failures, t.First = word.Failures, word.First
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
				t.set(k*blockSize+i, TaskState(letter))
			}
		}
	}
	t.share()
	t.changed, t.moved = nil, nil
	return t, nil
}
