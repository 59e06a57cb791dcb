package cli

import (
	"fmt"
	"strconv"
	"strings"

	"gbatch/internal/api"
)

// An array is one line in a list as long as tasks of it wait, and each task that
// has started is one.

// jobID is what people type for a job: its number, or of a task 123_7.
func jobID(j *api.Job) string {
	if j.ID != "" {
		return j.ID
	}
	return strconv.FormatUint(uint64(j.Number), 10)
}

// listID is a job's name in a list. Behind an array's are the tasks that wait
// and, after a %, how many may be active at once.
func listID(b []byte, j *api.Job) []byte {
	b = append(b, jobID(j)...)
	if t := j.Tasks; t != nil && t.NumWaiting > 0 {
		b = append(b, "_["...)
		b = append(b, shortIndexes(t.Waiting)...)
		if t.Parallelism > 0 {
			b = append(append(b, '%'), strconv.Itoa(t.Parallelism)...)
		}
		b = append(b, ']')
	}
	return b
}

// shortIndexes cuts a long list of indexes at a comma.
func shortIndexes(s string) string {
	const most = 32
	if len(s) <= most {
		return s
	}
	if i := strings.LastIndexByte(s[:most], ','); i > 0 {
		return s[:i] + ",..."
	}
	return s
}

// arrayNumber is the number of a task's array, and of other jobs their own.
func arrayNumber(j *api.Job) uint64 {
	if j.Parent > 0 {
		return uint64(j.Parent)
	}
	return uint64(j.Number)
}

// taskIndex is a task's index, of an array those that wait.
func taskIndex(b []byte, j *api.Job) []byte {
	switch {
	case j.Task != nil:
		return strconv.AppendInt(b, int64(*j.Task), 10)
	case j.Tasks != nil && j.Tasks.NumWaiting > 0:
		return append(b, shortIndexes(j.Tasks.Waiting)...)
	}
	return append(b, "N/A"...)
}

// taskFields are how far an array's tasks are, and a task's place in its array.
func taskFields(f *fields, d *api.JobDetail) {
	if d.Task != nil {
		f.add("Task", fmt.Sprintf("%d of array %d; its own number is %d", *d.Task, d.Parent, d.Number))
	}
	t := d.Tasks
	if t == nil {
		return
	}
	most := ""
	if t.Parallelism > 0 {
		most = fmt.Sprintf(", at most %d at once", t.Parallelism)
	}
	f.add("Tasks", shortIndexes(t.Indexes)+most)
	add := func(name string, n int, which string) {
		if n > 0 {
			f.add(name, strings.TrimSpace(fmt.Sprintf("%d  %s", n, shortIndexes(which))))
		}
	}
	add("  waiting", t.NumWaiting, t.Waiting)
	add("  active", t.NumActive, "")
	add("  succeeded", t.NumSucceeded, t.Succeeded)
	add("  failed", t.NumFailed, t.Failed)
	add("  cancelled", t.NumCancelled, t.Cancelled)
}

// taskCounts is how far an array's tasks are, in a few words.
func taskCounts(t *api.TaskSets) string {
	if t == nil {
		return ""
	}
	var parts []string
	for _, c := range []struct {
		n    int
		what string
	}{{t.NumWaiting, "waiting"}, {t.NumActive, "active"}, {t.NumSucceeded, "succeeded"}, {t.NumFailed, "failed"}, {t.NumCancelled, "cancelled"}} {
		if c.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", c.n, c.what))
		}
	}
	return "tasks: " + strings.Join(parts, ", ")
}
