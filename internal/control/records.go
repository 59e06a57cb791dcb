package control

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"gbatch/accounting"
	"gbatch/internal/job"
	"gbatch/internal/node"
	"gbatch/sched"
)

// jobRecord is a Job as stored under KindJob and KindHistory. Fields are only
// added; a changed meaning needs a new store format.
type jobRecord struct {
	Number    job.Number `json:"n"`
	UUID      string     `json:"id"`
	Parent    job.Number `json:"parent,omitempty"`
	Index     int        `json:"index,omitempty"`
	Tasks     *tasksWord `json:"tasks,omitempty"`
	Name      string     `json:"name"`
	Owner     *Owner     `json:"owner"`
	Request   *Request   `json:"request"`
	State     job.State  `json:"state"`
	Reason    job.Reason `json:"reason,omitempty"`
	Text      string     `json:"text,omitempty"`
	Version   uint64     `json:"v"`
	Submitted sched.Time `json:"submitted"`
	Since     sched.Time `json:"since"`
	Started   sched.Time `json:"started,omitempty"`
	First     sched.Time `json:"first,omitempty"`
	Ended     sched.Time `json:"ended,omitempty"`
	UsedRun   sched.Time `json:"usedRun,omitempty"`
	Expected  sched.Time `json:"expected,omitempty"`
	Tries     uint32     `json:"tries,omitempty"`
	Retried   *Retried   `json:"retried,omitempty"`
	Attempt   *Attempt   `json:"attempt,omitempty"`
	Ending    *Ending    `json:"ending,omitempty"`
	Sealed    bool       `json:"sealed,omitempty"`
	Waits     *Waits     `json:"waits,omitempty"`
	Secrets   uint32     `json:"secrets,omitempty"`
	Restart   *Restart   `json:"restart,omitempty"`
	Next      job.Number `json:"next,omitempty"`
	Cron      *Cron      `json:"cron,omitempty"`
	Template  job.Number `json:"template,omitempty"`
	Doc       job.Number `json:"doc,omitempty"`

	Used accounting.Amount `json:"used,omitzero"`
}

func encodeJob(j *Job) []byte { return encodeJobAs(j, j.Tasks.word()) }

func encodeJobAs(j *Job, tasks *tasksWord) []byte {
	v, err := json.Marshal(jobRecord{
		Number: j.Number, UUID: hex.EncodeToString(j.UUID[:]), Parent: j.Parent, Index: j.Index, Tasks: tasks, Name: j.Name, Owner: j.Owner, Request: j.Request,
		State: j.State, Reason: j.Reason, Text: j.Text, Version: j.Version,
		Submitted: j.Submitted, Since: j.Since, Started: j.Started, First: j.First, Ended: j.Ended, UsedRun: j.UsedRun, Expected: j.Expected,
		Tries: j.Tries, Retried: j.Retried, Attempt: j.Attempt, Ending: j.Ending, Sealed: j.Sealed, Waits: j.Waits, Secrets: j.Secrets,
		Restart: j.Restart, Next: j.Next, Doc: j.Doc, Cron: j.Cron, Template: j.Template,
		Used: j.Used,
	})
	must(err)
	return v
}

// DecodeJob reads a value stored under KindJob or KindHistory.
func DecodeJob(v []byte) (*Job, error) {
	var r jobRecord
	if err := json.Unmarshal(v, &r); err != nil {
		return nil, fmt.Errorf("decode job record: %w", err)
	}
	if r.Owner == nil || r.Request == nil || r.Request.Shape == nil || r.Number == 0 || (r.State.Active() && r.Attempt == nil) {
		return nil, fmt.Errorf("decode job record %d: fields are missing", r.Number)
	}
	j := &Job{
		Number: r.Number, Parent: r.Parent, Index: r.Index, Name: r.Name, Owner: r.Owner, Request: r.Request, State: r.State, Reason: r.Reason, Text: r.Text,
		Version: r.Version, Submitted: r.Submitted, Since: r.Since, Started: r.Started, First: r.First, Ended: r.Ended, UsedRun: r.UsedRun, Expected: r.Expected,
		Tries: r.Tries, Retried: r.Retried, Attempt: r.Attempt, Ending: r.Ending, Sealed: r.Sealed, Waits: r.Waits, Secrets: r.Secrets,
		Restart: r.Restart, Next: r.Next, Doc: r.Doc, Cron: r.Cron, Template: r.Template,
		Used: r.Used,
	}
	id, err := hex.DecodeString(r.UUID)
	if err != nil || len(id) != len(j.UUID) {
		return nil, fmt.Errorf("decode job record %d: bad UUID %q", r.Number, r.UUID)
	}
	copy(j.UUID[:], id)
	if j.Tasks, err = r.Tasks.tasks(); err != nil {
		return nil, fmt.Errorf("decode job record %d: %w", r.Number, err)
	}
	return j, nil
}

// nodeRecord is what is stored of a node. What it says again at its next sync
// (health, contact) is not.
type nodeRecord struct {
	Name      string    `json:"name"`
	Instance  string    `json:"instance"`
	Boot      string    `json:"boot"`
	Hash      string    `json:"hash"`
	Inventory Inventory `json:"inventory"`
	Drained   string    `json:"drained,omitempty"`

	DrainedGPUs map[string]string `json:"drainedGpus,omitempty"`
	Trouble     *Trouble          `json:"trouble,omitempty"`
	Unsure      bool              `json:"unsure,omitempty"`
}

func encodeNode(n *Node) []byte {
	v, err := json.Marshal(nodeRecord{n.Name, n.Instance, n.Boot, n.Hash, n.Inventory, n.Drained, n.DrainedGPUs, n.Trouble, n.Unsure})
	must(err)
	return v
}

// Load takes one stored record, in any order, before the first Apply. Kinds
// that the table does not need (documents, secrets, events, attempts, UUIDs)
// are ignored. Call Loaded after the last.
func (c *Controller) Load(r Record) error {
	switch r.Kind {
	case KindJob, KindHistory:
		c.next = max(c.next, r.Job+1)
		if r.Kind == KindHistory {
			return nil
		}
		j, err := DecodeJob(r.Value)
		if err != nil {
			return err
		}
		j.Owner = c.intern.owner(*j.Owner)
		j.Request.Shape = c.intern.shape(j.Request.Shape)
		j.Request = c.intern.request(*j.Request)
		c.insertLoaded(j)
	case KindTasks:
		r.Value = slices.Clone(r.Value) // it is looked at when all are there
		c.loading[r.Job] = append(c.loading[r.Job], r)
	case KindNode:
		var n nodeRecord
		if err := json.Unmarshal(r.Value, &n); err != nil {
			return fmt.Errorf("decode node record %s: %w", r.Name, err)
		}
		c.setNode(Node{Name: n.Name, Instance: n.Instance, Boot: n.Boot, Hash: n.Hash, Inventory: n.Inventory, Drained: n.Drained, DrainedGPUs: n.DrainedGPUs, Trouble: n.Trouble, Unsure: n.Unsure})
	case KindFloor:
		c.next = max(c.next, r.Job)
	case KindWindow:
		return c.loadWindow(r)
	case KindUsage:
		var row accounting.Row
		if err := json.Unmarshal(r.Value, &row); err != nil {
			return fmt.Errorf("decode usage record %s: %w", r.Name, err)
		}
		if err := c.ledger.Load(row); err != nil {
			return fmt.Errorf("decode usage record %s: %w", r.Name, err)
		}
	}
	return nil
}

func (c *Controller) insertLoaded(j *Job) {
	c.jobs.put(j.Number, j)
	c.byUUID[j.UUID] = j.Number
	if j.State.Final() {
		c.ended = append(c.ended, j.Number)
	} else if j.Cron != nil {
		at, _ := slices.BinarySearch(c.templates, j.Number)
		c.templates = slices.Insert(c.templates, at, j.Number)
	}
}

// Loaded finishes loading: queue and allocations are rebuilt from the jobs in
// the order of their numbers. Nodes get until NodeTimeout from now to say that
// they are there.
func (c *Controller) Loaded(now sched.Time) error {
	for _, n := range slices.Clone(c.nodes) {
		v := *n
		v.LastSeen = now
		c.versions++
		v.Version = c.epoch<<32 | c.versions
		c.setNode(v)
	}
	if err := c.loadArrays(); err != nil {
		return err
	}
	for j := range c.jobs.all() {
		c.queued += j.queued()
		if !j.State.Final() {
			c.watchLimit(j)
		}
		switch {
		case j.Tasks != nil:
		case j.State == job.Queued:
			c.enqueue(now, j)
		case j.State.Active():
			if err := c.loadActive(j); err != nil {
				return fmt.Errorf("job %d: %w", j.Number, err)
			}
		}
	}
	if err := c.rebase(now); err != nil {
		return err
	}
	c.loadWaits()
	c.findCronNext()
	c.sortEnded()
	for _, n := range c.ended {
		c.observe(c.job(n))
	}
	c.rollAt = now // what ended while no controller ran is closed first
	c.out, c.dirty = Effects{}, true
	return nil
}

func (c *Controller) loadActive(j *Job) error {
	if err := c.sched.Adopt(c.running(j)); err != nil {
		return err
	}
	for _, r := range j.Attempt.Ranks {
		if c.node(r.Alloc.Node) == nil {
			return fmt.Errorf("it runs on %s, which is no node", r.Alloc.Node)
		}
		if r.Phase != node.PhaseEnded {
			c.arrive(r.Alloc.Node, j.Number)
		}
	}
	return nil
}

// ParseNumber reads a job number as people type it.
func ParseNumber(s string) (job.Number, bool) {
	n, err := strconv.ParseUint(s, 10, 64)
	return job.Number(n), err == nil && n > 0 && len(s) <= 19
}

// normUUID is the lower-case hex digits of a UUID or of the beginning of one;
// empty when s is neither.
func normUUID(s string) string {
	s = strings.ToLower(strings.ReplaceAll(s, "-", ""))
	if len(s) > 32 || strings.Trim(s, "0123456789abcdef") != "" {
		return ""
	}
	return s
}

func joinNames[V any](m map[string]V) string {
	return strings.Join(slices.SortedFunc(maps.Keys(m), cmp.Compare), ", ")
}
