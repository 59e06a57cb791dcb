package launch

import (
	"fmt"
	"strconv"
	"strings"

	"gbatch/internal/job"
)

// AllTasks is the task of a frame that is about all.
const AllTasks = 1<<32 - 1

// Pattern is what the letters in the name of a file stand for.
type Pattern struct {
	Info *Info
	Step uint32
	Task int
	Node int // in the step
	Host string
}

// PerTask says whether a name differs among tasks or nodes.
func PerTask(name string) bool {
	for i := 0; i < len(name); i++ {
		if name[i] != '%' {
			continue
		}
		i++
		for i < len(name) && name[i] >= '0' && name[i] <= '9' {
			i++
		}
		if i < len(name) && strings.IndexByte("tnN", name[i]) >= 0 {
			return true
		}
	}
	return false
}

// Expand fills the letters in, by the rules for those of a batch script.
func (p Pattern) Expand(name string) string { return job.ExpandStdio(name, p.letter) }

func (p Pattern) letter(c byte) (text string, number bool) {
	i := p.Info
	array, index, isTask := strings.Cut(i.ID, "_")
	if !isTask {
		index = job.NoArrayTask
	}
	switch c {
	case '%':
		return "%", false
	case 'A':
		return array, true
	case 'a':
		return index, true
	case 'j':
		return strconv.FormatUint(i.Job, 10), true
	case 'J':
		return fmt.Sprintf("%d.%d", i.Job, p.Step), false
	case 's':
		return strconv.FormatUint(uint64(p.Step), 10), true
	case 't':
		return strconv.Itoa(p.Task), true
	case 'n':
		return strconv.Itoa(p.Node), true
	case 'N':
		host, _, _ := strings.Cut(p.Host, ".")
		return host, false
	case 'u':
		return i.User, false
	case 'x':
		return strings.ReplaceAll(i.Name, "/", "_"), false
	}
	return "", false
}
