package jobs

import (
	"fmt"
	"strconv"
	"strings"

	"gbatch/internal/api"
)

// An array is one line in a list as long as tasks of it wait, and each task that
// has started is one.

// ID is what people type for a job: its number, or of a task 123_7.
func ID(j *api.Job) string {
	if j.ID != "" {
		return j.ID
	}
	return strconv.FormatUint(uint64(j.Number), 10)
}

// listID is a job's name in a list. Behind an array's are the tasks that wait
// and, after a %, how many may be active at once.
func listID(b []byte, j *api.Job) []byte {
	b = append(b, ID(j)...)
	if t := j.Tasks; t != nil && t.NumWaiting > 0 {
		b = append(b, "_["...)
		b = append(b, ShortIndexes(t.Waiting)...)
		if t.Parallelism > 0 {
			b = append(append(b, '%'), strconv.Itoa(t.Parallelism)...)
		}
		b = append(b, ']')
	}
	return b
}

// ShortIndexes cuts a long list of indexes at a comma.
func ShortIndexes(s string) string {
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
func arrayNumber(j *api.Job) int64 {
	if j.Parent > 0 {
		return int64(j.Parent)
	}
	return int64(j.Number)
}

// taskIndex is a task's index, of an array those that wait.
func taskIndex(b []byte, j *api.Job) []byte {
	switch {
	case j.Task != nil:
		return strconv.AppendInt(b, int64(*j.Task), 10)
	case j.Tasks != nil && j.Tasks.NumWaiting > 0:
		return append(b, ShortIndexes(j.Tasks.Waiting)...)
	}
	return append(b, "N/A"...)
}

// firstIndex is what taskIndex is ordered by: the first of several; -1 for a job
// that is no task.
func firstIndex(j *api.Job) int64 {
	switch {
	case j.Task != nil:
		return int64(*j.Task)
	case j.Tasks != nil && j.Tasks.NumWaiting > 0:
		digits := len(j.Tasks.Waiting) - len(strings.TrimLeft(j.Tasks.Waiting, "0123456789"))
		if n, err := strconv.ParseInt(j.Tasks.Waiting[:digits], 10, 64); err == nil {
			return n
		}
	}
	return -1
}

// TaskCounts is how far an array's tasks are, in a few words.
func TaskCounts(t *api.TaskSets) string {
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
