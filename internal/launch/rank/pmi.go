package rank

import (
	"bufio"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"gbatch/internal/launch"
)

// pmi serves the tasks of one rank with the process management interface of MPI,
// version 1, in its text form over a socket that each task has: they put values,
// meet at a barrier, and get what others have put.
type pmi struct {
	g    *group
	name string // of the space of keys: one for the step

	mu      sync.Mutex
	known   map[string]string // that all have put before the last barrier
	put     map[string]string // since, by tasks here
	size    int               // of put, in bytes
	waiting []net.Conn        // at the barrier, each once
	conns   []net.Conn
}

func newPMI(g *group) *pmi {
	return &pmi{g: g, name: fmt.Sprintf("kvs_%d_%d", g.s.info.Job, g.order.Layout.Step), known: map[string]string{}, put: map[string]string{}}
}

// pmiFD is the number that the socket has in a task: the one behind errors.
const pmiFD = 3

func (p *pmi) env(t *task) []string {
	size := itoa(p.g.order.Layout.Tasks)
	return []string{"PMI_FD=" + itoa(pmiFD), "PMI_RANK=" + itoa(t.ID), "PMI_SIZE=" + size, "PMI_JOBID=" + p.name, "PMI_SPAWNED=0", "PMI_APPNUM=0"}
}

// connect makes a task's socket, and returns its side.
func (p *pmi) connect(t *task) (*os.File, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	own := os.NewFile(uintptr(pair[0]), "pmi")
	defer own.Close()
	theirs := os.NewFile(uintptr(pair[1]), "pmi")
	conn, err := net.FileConn(own)
	if err != nil {
		theirs.Close()
		return nil, err
	}
	p.mu.Lock()
	p.conns = append(p.conns, conn)
	p.mu.Unlock()
	go p.serve(t, conn) // ends with the task, or by close
	return theirs, nil
}

func (p *pmi) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		c.Close()
	}
}

func (p *pmi) serve(t *task, conn net.Conn) {
	in := bufio.NewScanner(conn)
	in.Buffer(nil, 64<<10)
	for in.Scan() {
		if answer := p.answer(t, conn, readPMI(in.Text())); answer != "" {
			if _, err := conn.Write([]byte(answer + "\n")); err != nil {
				return
			}
		}
	}
}

// readPMI takes a line apart: names with values.
func readPMI(line string) map[string]string {
	q := map[string]string{}
	for word := range strings.FieldsSeq(line) {
		if name, value, ok := strings.Cut(word, "="); ok {
			q[name] = value
		}
	}
	// A value may have blanks: it is what is behind the last name.
	if _, value, ok := strings.Cut(line, " value="); ok {
		q["value"] = value
	}
	return q
}

// maxPut bounds what tasks of one rank may put between two barriers, in bytes; each
// value has what it costs on the way beside it.
const (
	maxPut  = 4 << 20
	putCost = 64
)

func (p *pmi) answer(t *task, conn net.Conn, q map[string]string) string {
	switch q["cmd"] {
	case "init":
		return "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0"
	case "get_maxes":
		return "cmd=maxes kvsname_max=256 keylen_max=256 vallen_max=1024"
	case "get_appnum":
		return "cmd=appnum appnum=0"
	case "get_my_kvsname":
		return "cmd=my_kvsname kvsname=" + p.name
	case "get_universe_size":
		return fmt.Sprintf("cmd=universe_size size=%d", p.g.order.Layout.Tasks)
	case "get_ranks2hosts", "create_kvs", "destroy_kvs", "spawn", "publish_name", "unpublish_name", "lookup_name":
		return fmt.Sprintf("cmd=%s_result rc=-1 msg=not_supported", q["cmd"])
	case "put":
		if !p.keep(q["key"], q["value"]) {
			return "cmd=put_result rc=-1 msg=too_much"
		}
		return "cmd=put_result rc=0 msg=success"
	case "get":
		return p.get(q["key"])
	case "barrier_in":
		p.arrive(conn)
		return ""
	case "finalize":
		return "cmd=finalize_ack"
	case "abort":
		code := 1
		_, _ = fmt.Sscan(q["exitcode"], &code)
		_ = p.g.conn.Send(launch.KindPMI, t.ID, launch.PMIBarrier{Abort: &code})
		return ""
	}
	return fmt.Sprintf("cmd=%s rc=-1 msg=unknown_cmd", q["cmd"])
}

// keep takes in what a task puts, unless that is too much.
func (p *pmi) keep(key, value string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	more := len(key) + len(value) + putCost
	if old, ok := p.put[key]; ok {
		more = len(value) - len(old)
	}
	if p.size+more > maxPut {
		return false
	}
	p.put[key], p.size = value, p.size+more
	return true
}

func (p *pmi) get(key string) string {
	if key == "PMI_process_mapping" {
		return "cmd=get_result rc=0 msg=success value=" + p.mapping()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	value, ok := p.put[key]
	if !ok {
		value, ok = p.known[key]
	}
	if !ok {
		return fmt.Sprintf("cmd=get_result rc=-1 msg=key_%s_not_found value=unknown", key)
	}
	return "cmd=get_result rc=0 msg=success value=" + value
}

// mapping says which tasks share a node: blocks of (first node, nodes, tasks of
// each), where tasks are numbered by blocks.
func (p *pmi) mapping() string {
	var blocks []string
	placed := p.g.order.Layout.Placed
	next := 0
	for k, at := range placed {
		if len(at.Tasks) == 0 || at.Tasks[0].ID != next {
			return "" // numbered otherwise: programs find out by names of hosts
		}
		next += len(at.Tasks)
		if at.Tasks[len(at.Tasks)-1].ID != next-1 {
			return ""
		}
		blocks = append(blocks, fmt.Sprintf("(%d,1,%d)", k, len(at.Tasks)))
	}
	return "(vector," + strings.Join(blocks, ",") + ")"
}

// arrive has a task wait until all of the step have arrived.
func (p *pmi) arrive(conn net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if slices.Contains(p.waiting, conn) {
		return // it says so again, and yet is one task
	}
	p.waiting = append(p.waiting, conn)
	if len(p.waiting) == len(p.g.placed.Tasks) {
		_ = p.g.conn.Send(launch.KindPMI, 0, launch.PMIBarrier{Put: p.put})
	}
}

// receive takes what all ranks have put, and lets the tasks go on.
func (p *pmi) receive(f launch.Frame) {
	var b launch.PMIBarrier
	if f.Read(&b) != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.Copy(p.known, b.Put)
	p.put, p.size = map[string]string{}, 0
	waiting := p.waiting
	p.waiting = nil
	for _, c := range waiting {
		_, _ = c.Write([]byte("cmd=barrier_out\n"))
	}
}
