package launch

import (
	"fmt"
	"strconv"
	"strings"
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

// Expand replaces the letters. A number before one is its width, at most 10;
// what is no letter of these stays, and so does everything of a name with a
// backslash.
func (p Pattern) Expand(name string) string {
	if strings.Contains(name, `\`) {
		return strings.ReplaceAll(name, `\`, "")
	}
	var b strings.Builder
	for i := 0; i < len(name); i++ {
		if name[i] != '%' {
			b.WriteByte(name[i])
			continue
		}
		end := i + 1
		for end < len(name) && name[end] >= '0' && name[end] <= '9' {
			end++
		}
		width, _ := strconv.Atoi(name[i+1 : end])
		word, ok := "", false
		if end < len(name) {
			word, ok = p.letter(name[end])
		}
		if !ok {
			b.WriteByte('%')
			continue
		}
		if n, err := strconv.Atoi(word); err == nil && width > 0 {
			word = fmt.Sprintf("%0*d", min(width, 10), n)
		}
		b.WriteString(word)
		i = end
	}
	return b.String()
}

func (p Pattern) letter(c byte) (string, bool) {
	i := p.Info
	array, index, isTask := strings.Cut(i.ID, "_")
	switch c {
	case '%':
		return "%", true
	case 'A':
		return array, true
	case 'a':
		if !isTask {
			return "4294967294", true
		}
		return index, true
	case 'j':
		return strconv.FormatUint(i.Job, 10), true
	case 'J':
		return fmt.Sprintf("%d.%d", i.Job, p.Step), true
	case 's':
		return strconv.FormatUint(uint64(p.Step), 10), true
	case 't':
		return strconv.Itoa(p.Task), true
	case 'n':
		return strconv.Itoa(p.Node), true
	case 'N':
		host, _, _ := strings.Cut(p.Host, ".")
		return host, true
	case 'u':
		return i.User, true
	case 'x':
		return i.Name, true
	}
	return "", false
}
