package slurmsite

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// config is the part of gctld.yaml that Slurm's files speak of, in its order.
type config struct {
	Admins         []string  `yaml:"admins,omitempty"`
	Operators      []string  `yaml:"operators,omitempty"`
	Projects       []project `yaml:"projects,omitempty"`
	DefaultProject *string   `yaml:"defaultProject,omitempty"`
	Partitions     []entry   `yaml:"partitions,omitempty"`
	Licenses       licenses  `yaml:"licenses,omitempty,flow"`

	Limits limits `yaml:"limits,omitempty"`
	Policy policy `yaml:"policy,omitempty"`
}

// licenses are counters by name.
type licenses map[string]int64

type project struct {
	Name       string           `yaml:"name"`
	Parent     string           `yaml:"parent,omitempty"`
	Shares     int64            `yaml:"shares,omitempty"`
	Members    []string         `yaml:"members,omitempty,flow"`
	UserShares map[string]int64 `yaml:"userShares,omitempty,flow"`
	Limits     bounds           `yaml:"limits,omitempty,flow"`
	Budget     int64            `yaml:"budget,omitempty"`
}

type bounds struct {
	Running    int64 `yaml:"running,omitempty"`
	Queued     int64 `yaml:"queued,omitempty"`
	GPUs       int64 `yaml:"gpus,omitempty"`
	GPUMinutes int64 `yaml:"gpuMinutes,omitempty"`
}

type limits struct {
	DefaultDuration string `yaml:"defaultDuration,omitempty"`
	MaxDuration     string `yaml:"maxDuration,omitempty"`
	DefaultMin      string `yaml:"defaultMinDuration,omitempty"`
	Grace           string `yaml:"grace,omitempty"`
	MaxQueued       int64  `yaml:"maxQueuedJobs,omitempty"`
}

type policy struct {
	Mode       string            `yaml:"mode,omitempty"`
	Weights    map[string]int64  `yaml:"weights,omitempty,flow"`
	MaxAge     string            `yaml:"maxAge,omitempty"`
	HalfLife   string            `yaml:"halfLife,omitempty"`
	DefaultQOS string            `yaml:"defaultQos,omitempty"`
	QOS        map[string]class  `yaml:"qos,omitempty"`
	Users      map[string]bounds `yaml:"users,omitempty"`
}

type class struct {
	Priority int64    `yaml:"priority"`
	Preempts []string `yaml:"preempts,omitempty,flow"`
	Limits   bounds   `yaml:"limits,omitempty,flow"`
	PerUser  bounds   `yaml:"perUser,omitempty,flow"`
}

func write(c config) (string, error) {
	var b strings.Builder
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(c); err != nil {
		return "", fmt.Errorf("write configuration: %w", err)
	}
	if text := b.String(); text != "{}\n" {
		return text, nil
	}
	return "", nil
}

func (s *site) config() config {
	c := config{Policy: policy{QOS: map[string]class{}, Users: map[string]bounds{}}}
	s.durations(&c)
	s.priorities(&c)
	s.classes(&c)
	s.projects(&c)
	c.Partitions = s.entries(&c)
	c.Licenses = s.licenses()
	c.Admins, c.Operators = sorted(s.admins), sorted(s.operators)
	return c
}

func sorted(names []string) []string { return slices.Compact(slices.Sorted(slices.Values(names))) }

// seconds reads a length of time of Slurm's, in a unit where it is a bare number.
func seconds(text string, unit int64) (int64, bool) {
	if strings.EqualFold(text, "UNLIMITED") || strings.EqualFold(text, "INFINITE") || text == "" {
		return 0, false
	}
	days, clock, has := strings.Cut(text, "-")
	if !has {
		days, clock = "0", text
	}
	total, err := strconv.ParseInt(days, 10, 32)
	parts := strings.Split(clock, ":")
	if err != nil || total < 0 || len(parts) > 3 {
		return 0, false
	}
	total *= 86400
	scale := map[bool][]int64{false: {unit}, true: {3600}}[has] // D-H
	if len(parts) == 2 {
		scale = map[bool][]int64{false: {60, 1}, true: {3600, 60}}[has] // M:S, D-H:M
	} else if len(parts) == 3 {
		scale = []int64{3600, 60, 1}
	}
	for i, p := range parts {
		n, err := strconv.ParseInt(p, 10, 32)
		if err != nil || n < 0 {
			return 0, false
		}
		total += n * scale[i]
	}
	return total, true
}

// span writes seconds for our files.
func span(s int64) string {
	for _, u := range []struct {
		name string
		long int64
	}{{"day", 86400}, {"hour", 3600}, {"minute", 60}, {"second", 1}} {
		switch n := s / u.long; {
		case s%u.long != 0:
		case n == 1:
			return "1 " + u.name
		default:
			return fmt.Sprintf("%d %ss", n, u.name)
		}
	}
	return ""
}

// maxSpan is the longest that our files may say.
const maxSpan = 3650 * 86400

// durations are limits of all jobs.
func (s *site) durations(c *config) {
	if n, ok := seconds(s.conf["killwait"].value, 1); ok && n <= 3600 {
		c.Limits.Grace = span(n)
	}
	if n, ok := seconds(s.conf["preemptexempttime"].value, 60); ok && n > 0 && n <= maxSpan {
		c.Limits.DefaultMin = span(n)
	}
	if n := s.count(s.conf, "maxjobcount"); n > 0 {
		c.Limits.MaxQueued = n
	}
}

// weightKeys are Slurm's weights and ours.
var weightKeys = []struct{ slurm, ours string }{{"priorityweightage", "age"}, {"priorityweightfairshare", "fairShare"}, {"priorityweightqos", "qos"}, {"priorityweightjobsize", "size"},
	{"priorityweightpartition", "partition"}}

// maxWeight bounds a weight here.
const maxWeight = 1_000_000_000

func (s *site) priorities(c *config) {
	if kind, ok := s.conf["prioritytype"]; ok || len(s.weights()) > 0 {
		s.weigh(c, strings.EqualFold(kind.value, "priority/multifactor"))
	} else if s.in.Conf.Text != "" {
		s.note(item{"PriorityType", "", s.in.Conf.Name}, "is not given, and what Slurm does then depends on its version; gbatch's own weights stand")
	}
	s.times(c)
	s.order(c)
}

// weights are the keys of weights that the file has.
func (s *site) weights() (out []string) {
	for _, k := range weightKeys {
		if _, ok := s.conf[k.slurm]; ok {
			out = append(out, k.slurm)
		}
	}
	return out
}

// weigh takes the weights over as they stand to each other; without multifactor
// jobs go as they came.
func (s *site) weigh(c *config, multifactor bool) {
	c.Policy.Weights = map[string]int64{}
	most := int64(1)
	for _, k := range weightKeys {
		it := s.conf[k.slurm]
		n := s.count(s.conf, k.slurm)
		if k.ours == "size" && strings.EqualFold(s.conf["priorityfavorsmall"].value, "YES") && n > 0 {
			s.note(s.conf["priorityfavorsmall"], "size prefers large jobs; weights.small prefers those that take little machine time")
			n = 0
		}
		if !multifactor && n > 0 {
			s.note(it, "means nothing without PriorityType=priority/multifactor")
			n = 0
		}
		c.Policy.Weights[k.ours], most = n, max(most, n)
	}
	for k, n := range c.Policy.Weights {
		if most > maxWeight { // all of them, so that they stay to each other as they were
			c.Policy.Weights[k] = int64(float64(n) * maxWeight / float64(most))
		}
	}
}

// times are those that priorities go by.
func (s *site) times(c *config) {
	for _, d := range []struct {
		key string
		to  *string
	}{{"prioritymaxage", &c.Policy.MaxAge}, {"prioritydecayhalflife", &c.Policy.HalfLife}} {
		it, ok := s.conf[d.key]
		n, valid := seconds(it.value, 60)
		switch {
		case !ok:
		case valid && n > 0 && n <= maxSpan:
			*d.to = span(n)
		case d.key == "prioritydecayhalflife" && valid && n == 0:
			*d.to = span(maxSpan)
			s.note(it, "usage always fades here: a half-life of ten years comes close")
		default:
			s.note(it, "is no length of time that can be had here")
		}
	}
}

// order is how the queue is worked off, and for whom others make room.
func (s *site) order(c *config) {
	if it := s.conf["schedulertype"]; strings.EqualFold(it.value, "sched/builtin") {
		c.Policy.Mode = "fcfs"
	} else if it.value != "" && !strings.EqualFold(it.value, "sched/backfill") {
		s.note(it, "is not known here")
	}
	if it := s.conf["preempttype"]; it.value != "" && !strings.EqualFold(it.value, "preempt/qos") && !strings.EqualFold(it.value, "preempt/none") {
		s.note(it, "jobs are halted for others by their class of service alone")
	}
	if it := s.conf["preemptmode"]; it.value != "" && !strings.EqualFold(it.value, "OFF") {
		s.note(it, "jobs that say restartable are halted and continued, others never")
	}
}

// classes are the classes of service.
func (s *site) classes(c *config) {
	highest, preempt := int64(0), strings.EqualFold(s.conf["preempttype"].value, "preempt/qos") || s.in.Conf.Text == ""
	priority := map[string]int64{}
	for _, q := range s.qos {
		priority[q.name] = s.count(q.values, "priority")
		highest = max(highest, priority[q.name])
	}
	preempted := preempting(s.qos)
	for _, q := range s.qos {
		k := class{Limits: bounds{
			Running: s.count(q.values, "grpjobs"), Queued: s.submitted(q.values, "grpsubmit", "grpsubmitjobs"), GPUs: s.gpuCount(q.values, "grptres"), GPUMinutes: s.gpuCount(q.values, "grptresrunmins"),
		}, PerUser: bounds{Running: s.count(q.values, "maxjobspu", "maxjobsperuser"), Queued: s.submitted(q.values, "maxsubmitpu", "maxsubmitjobsperuser"), GPUs: s.gpuCount(q.values, "maxtrespu", "maxtresperuser")}}
		if highest > 0 {
			k.Priority = priority[q.name] * 1000 / highest
		}
		if it, ok := q.values["preempt"]; ok {
			delete(q.values, "preempt")
			if preempt {
				k.Preempts = s.preempts(q, it, preempted)
			} else {
				s.note(it, "means nothing without PreemptType=preempt/qos")
			}
		}
		for _, key := range sortedKeys(q.values) {
			if it := q.values[key]; !isNothing[key+"="+it.value] {
				s.note(it, "is no part of a class of service here")
			}
		}
		c.Policy.QOS[q.name] = k
	}
	if s.clusterQOS == "" && c.Policy.QOS["normal"].PerUser == (bounds{}) {
		if _, ok := c.Policy.QOS["normal"]; ok {
			s.clusterQOS = "normal"
		}
	}
	if _, ok := c.Policy.QOS[s.clusterQOS]; ok {
		c.Policy.DefaultQOS = s.clusterQOS
	}
}

// isNothing are values that every class has and that say nothing.
var isNothing = map[string]bool{"gracetime=00:00:00": true, "preemptmode=cluster": true, "usagefactor=1.000000": true, "usagefactor=1": true, "flags=DenyOnLimit": true}

// preempting says of each class which ones it wants to halt jobs of.
func preempting(all []*qos) map[string]map[string]bool {
	wants := map[string]map[string]bool{}
	for _, q := range all {
		if wants[q.name] == nil { // of two lines of one name the first counts
			wants[q.name] = map[string]bool{}
			for name := range strings.SplitSeq(q.values["preempt"].value, ",") {
				wants[q.name][name] = true
			}
		}
	}
	return wants
}

// preempts are the classes that one may halt jobs of; not those that are not
// listed, nor one that may do the same to it. Its own wants are over with that.
func (s *site) preempts(q *qos, it item, wants map[string]map[string]bool) (out []string) {
	taken := map[string]bool{}
	for name := range strings.SplitSeq(it.value, ",") {
		theirs, ok := wants[name]
		switch {
		case taken[name]:
		case !ok:
			s.note(it, "%s is not in the list", name)
		case name == q.name || theirs[q.name]:
			s.note(it, "%s and %s cannot preempt each other", q.name, name)
		default:
			out = append(out, name)
			taken[name] = true
		}
	}
	wants[q.name] = map[string]bool{}
	return out
}

// submitted is a bound of jobs that wait or run, of which only those that wait
// are bounded here.
func (s *site) submitted(values map[string]item, keys ...string) int64 {
	for _, key := range keys {
		if it, ok := values[key]; ok {
			s.note(it, "counts jobs that wait, without those that run, as queued")
			return s.count(values, key)
		}
	}
	return 0
}
