package slurmsite

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// partition is one of slurm.conf: its line, over the values of the DEFAULT line.
type partition struct {
	item
	values map[string]item // what is not made into a key is left
	most   string          // MaxTime
	factor int64           // PriorityJobFactor
}

// entry is a partition of gctld.yaml.
type entry struct {
	Name            string   `yaml:"name"`
	Nodes           []string `yaml:"nodes,omitempty,flow"`
	AllNodes        bool     `yaml:"allNodes,omitempty"`
	Default         bool     `yaml:"default,omitempty"`
	State           string   `yaml:"state,omitempty"`
	Reason          string   `yaml:"reason,omitempty"`
	Priority        int64    `yaml:"priority,omitempty"`
	DefaultDuration string   `yaml:"defaultDuration,omitempty"`
	MaxDuration     string   `yaml:"maxDuration,omitempty"`
	MinNodes        int64    `yaml:"minNodes,omitempty"`
	MaxNodes        int64    `yaml:"maxNodes,omitempty"`
	MaxMiBPerNode   int64    `yaml:"maxMiBPerNode,omitempty"`
	MiBPerCore      int64    `yaml:"defaultMiBPerCore,omitempty"`
	Projects        []string `yaml:"projects,omitempty,flow"`
	NotProjects     []string `yaml:"notProjects,omitempty,flow"`
	Users           []any    `yaml:"users,omitempty,flow"`
	QOS             []string `yaml:"qos,omitempty,flow"`
	NotQOS          []string `yaml:"notQos,omitempty,flow"`
}

// maxPartitions is how many a site may have here.
const maxPartitions = 200

// entries are the partitions as gctld.yaml has them.
func (s *site) entries(c *config) (all []entry) {
	name := regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:+-]{0,63}$`)
	known := map[string]bool{}
	standard := ""
	for _, p := range s.partitions {
		_, err := strconv.Atoi(p.value)
		switch {
		case !name.MatchString(p.value) || err == nil:
			s.note(p.item, "names have letters, digits, '.', '_', ':', '+' and '-' here, and are no number: rename it")
			continue
		case known[p.value]:
			s.note(p.item, "is there twice; the first counts")
			continue
		}
		known[p.value] = true
		e := s.entry(p)
		if e.Default && standard != "" {
			s.note(p.item, "is the default too; here there is one, which is %s", standard)
			e.Default = false
		} else if e.Default {
			standard = e.Name
		}
		all = append(all, e)
	}
	s.longest(c, all)
	return all
}

func (s *site) entry(p *partition) entry {
	e := entry{Name: p.value}
	take := func(key string) item {
		it := p.values[key]
		delete(p.values, key)
		return it
	}
	e.Default = strings.EqualFold(take("default").value, "YES")
	if it := take("nodes"); strings.EqualFold(it.value, "ALL") {
		e.AllNodes = true
	} else if it.value != "" && s.nodeList(it) {
		e.Nodes = []string{it.value}
	}
	switch it := take("state"); strings.ToUpper(it.value) {
	case "", "UP":
	case "DOWN", "DRAIN", "INACTIVE":
		e.State = strings.ToLower(it.value)
	default:
		s.note(it, "is no state of a partition; it is up")
	}
	e.Priority = s.priority(p)
	s.tier(take("prioritytier"))
	s.partitionTimes(&e, take("maxtime"), take("defaulttime"))
	e.MinNodes, e.MaxNodes = s.bound(take("minnodes")), s.bound(take("maxnodes"))
	e.MaxMiBPerNode = s.bound(cmp.Or(take("maxmempernode"), s.conf["maxmempernode"]))
	e.MiBPerCore = s.bound(cmp.Or(take("defmempercpu"), s.conf["defmempercpu"]))
	if e.MinNodes > e.MaxNodes && e.MaxNodes > 0 {
		e.MinNodes = 0
		s.note(p.item, "has MinNodes above MaxNodes, and was given no MinNodes")
	}
	s.whose(&e, take)
	s.leftOver(p.values, partitionKeys)
	return e
}

// priority is a partition's part of its jobs' priority, of 1000: in Slurm it is held
// against the largest of all.
func (s *site) priority(p *partition) int64 {
	delete(p.values, "priorityjobfactor")
	most := int64(1)
	for _, o := range s.partitions {
		most = max(most, o.factor)
	}
	return p.factor * 1000 / most
}

func (s *site) tier(it item) {
	if n, _ := strconv.Atoi(it.value); n > 1 {
		s.note(it, "jobs of a higher tier go first there always, whatever their priority; here give the partition a priority, and policy.weights.partition more than all other weights together")
	}
}

// partitionTimes: who says no time gets Slurm's DefaultTime, or the longest there is.
func (s *site) partitionTimes(e *entry, most, usual item) {
	longest, ok := seconds(most.value, 60)
	if !ok && most.value != "" && !strings.EqualFold(most.value, "UNLIMITED") && !strings.EqualFold(most.value, "INFINITE") {
		s.note(most, "is no length of time")
	}
	if ok && (longest == 0 || longest > maxSpan) {
		s.note(most, "is no length of time that can be had here")
		ok = false
	}
	if !ok {
		s.note(cmp.Or(most, item{e.Name + ".MaxTime", "", s.in.Conf.Name}), "every job has an end here: partition %s had none, and limits.maxDuration bounds its jobs", e.Name)
		longest = maxSpan
	} else {
		e.MaxDuration = span(longest)
	}
	n, given := seconds(usual.value, 60)
	switch {
	case given && n > 0 && n <= longest:
		e.DefaultDuration = span(n)
	case usual.value != "":
		s.note(usual, "is not within the longest time")
	}
	if e.DefaultDuration == "" {
		e.DefaultDuration = e.MaxDuration
	}
}

// bound is a number of 0 or more. Slurm's -1 and UNLIMITED are none.
func (s *site) bound(it item) int64 {
	if it.value == "" || it.value == "-1" || strings.EqualFold(it.value, "UNLIMITED") {
		return 0
	}
	n, err := strconv.ParseInt(it.value, 10, 32)
	if err != nil || n < 0 {
		s.note(it, "is no number")
		return 0
	}
	return n
}

// whose says whose jobs a partition takes.
func (s *site) whose(e *entry, take func(string) item) {
	accounts, classes := known{what: "projects", names: map[string]bool{}}, known{what: "classes of service", names: map[string]bool{}}
	for _, a := range s.accounts {
		accounts.names[a.name] = true
	}
	for _, q := range s.qos {
		classes.names[q.name] = true
	}
	allow, deny := take("allowaccounts"), take("denyaccounts")
	e.Projects, e.NotProjects = s.namedIn(e, allow, accounts), s.namedIn(e, deny, accounts)
	named := map[string]bool{}
	for _, name := range slices.Concat(e.Projects, e.NotProjects) {
		named[name] = true
	}
	for _, a := range s.accounts {
		if named[a.parent] && !named[a.name] {
			s.note(cmp.Or(allow, deny), "since Slurm 23.11 it means the accounts below too; here each is named: %s is not", a.name)
		}
	}
	allow, deny = take("allowqos"), take("denyqos")
	e.QOS, e.NotQOS = s.namedIn(e, allow, classes), s.namedIn(e, deny, classes)
	if it := take("allowgroups"); it.value != "" && !strings.EqualFold(it.value, "ALL") {
		for name := range strings.SplitSeq(it.value, ",") {
			e.Users = append(e.Users, map[string]string{"group": name})
		}
	}
	if strings.EqualFold(take("rootonly").value, "YES") {
		e.Users = []any{"root"}
	}
}

// known are the names of one kind that the files have.
type known struct {
	what  string
	names map[string]bool
}

// namedIn are those of a list of names that there are. Of a list of which none is
// there, which would let everybody in, the partition is shut.
func (s *site) namedIn(e *entry, it item, k known) (out []string) {
	if it.value == "" || strings.EqualFold(it.value, "ALL") {
		return nil
	}
	if len(k.names) == 0 {
		s.note(it, "becomes %s, which are in the other files: give these too", k.what)
	}
	twice := map[string]bool{}
	for name := range strings.SplitSeq(it.value, ",") {
		if k.names[name] && !twice[name] {
			out = append(out, name)
		}
		twice[name] = true
		if !k.names[name] && len(k.names) > 0 {
			s.note(it, "%s is not among the %s", name, k.what)
		}
	}
	if len(out) == 0 && strings.HasPrefix(strings.ToLower(it.key), "allow") {
		e.State, e.Reason = "inactive", it.key+" of slurm.conf names nobody who is known"
	}
	return out
}

// longest makes the limit of all jobs that of the partition with the longest.
func (s *site) longest(c *config, all []entry) {
	longest, unlimited := int64(0), false
	for _, p := range s.partitions {
		n, ok := seconds(p.most, 60)
		longest, unlimited = max(longest, n), unlimited || !ok
	}
	if len(all) == 0 || longest == 0 || longest > maxSpan {
		return
	}
	const ours, usual = 28 * 86400, 14 * 86400 // what a site has that says nothing
	if !unlimited || longest > ours {
		c.Limits.MaxDuration = span(longest)
	}
	if !unlimited && longest < usual {
		c.Limits.DefaultDuration = span(longest)
	}
}
