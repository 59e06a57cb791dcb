package lab

import (
	"strings"
	"time"

	"gbatch/internal/api"
)

// operation is something that operators do, or that befalls the site.
type operation struct {
	at   time.Duration
	what string
	do   func()
}

// operations are those of two weeks, in their order.
func operations(s *site, o *oracle) []operation {
	day := func(d, h int) time.Duration { return time.Duration(d*24+h) * time.Hour }
	return []operation{
		{day(0, 4), "a node is drained, and waited for", func() { s.drained("gpu03", o) }},
		{day(0, 9), "the controller is replaced", func() { o.disturb(); s.upgrade(30 * time.Second) }},
		{day(0, 14), "a node loses its power for two hours", func() { s.powerLoss("gpu07", 2*time.Hour, o) }},
		{day(1, 3), "all nodes are rebooted, each when it is empty", func() { s.reboots("gpu[01-16]", o) }},
		{day(2, 2), "users may have fewer GPUs", func() { s.reload(limits{gpus: 16, matlab: 4, budget: 1_000_000}, o, "policy.perUser.gpus: 16") }},
		{day(2, 20), "and more", func() { s.reload(limits{gpus: 48, matlab: 2, budget: 1_000_000}, o, "licenses.matlab: 2") }},
		{day(3, 1), "a night for maintenance, each weekday", func() {
			o.disturb()
			s.must("olga", "gadm", "reserve", "night", "--nodes", "gpu04", "--from", "20:00", "--until", "23:00", "--every", "weekday", "--maintenance", "-r", "backup")
		}},
		{day(4, 0), "a project has used its budget", func() { s.reload(limits{gpus: 48, matlab: 2, budget: 60}, o, "projects[nlp].budget: 60") }},
		{day(4, 12), "and has more", func() {
			s.reload(limits{gpus: 48, matlab: 2, budget: 6_000_000}, o, "projects[nlp].budget: 6000000")
		}},
		{day(5, 0), "the disk of a node is full", func() {
			o.disturb()
			s.machine("gpu09").sick("disk: 0.2 GiB are free below /var/lib/gnoded, of 1 GiB that shall be")
		}},
		{day(5, 6), "and is not", func() { o.disturb(); s.machine("gpu09").sick() }},
		{day(6, 1), "a token runs out", func() { s.expires() }},
		{day(7, 2), "two nodes lose their power", func() { s.powerLoss("gpu11", 30*time.Hour, o); s.powerLoss("gpu12", 3*time.Minute, o) }},
		{day(8, 5), "who is on a node has to leave", func() { s.evicted("gpu05", o) }},
		{day(9, 0), "the controller is replaced twice", func() { o.disturb(); s.upgrade(2 * time.Minute); time.Sleep(time.Minute); s.upgrade(10 * time.Second) }},
		{day(10, 3), "one GPU is broken", func() {
			o.disturb()
			s.must("olga", "gadm", "drain", "gpu02", "--gpu", "5", "-r", "ECC errors")
		}},
		{day(10, 9), "and replaced", func() { o.disturb(); s.must("olga", "gadm", "resume", "gpu02", "--gpu", "5") }},
		{day(11, 2), "all nodes are rebooted again", func() { s.reboots("gpu[01-16]", o) }},
		{day(12, 0), "a week's maintenance is skipped", func() { o.disturb(); s.must("olga", "gadm", "unreserve", "--skip", "night") }},
	}
}

func (s *site) machine(name string) *machine {
	for _, m := range s.nodes {
		if m.name == name {
			return m
		}
	}
	s.t.Fatalf("there is no node %s", name)
	return nil
}

// node is what ginfo has of one.
func (s *site) node(name string) (n api.Node) {
	var info api.ClusterInfo
	s.read(&info, "root", "ginfo", "--json", "-n", name)
	if len(info.Nodes) == 1 {
		return info.Nodes[0]
	}
	s.found.wrong("ginfo -n %s has %d nodes", name, len(info.Nodes))
	return n
}

// empty says whether nothing truly runs on a node.
func (s *site) empty(name string) bool {
	_, nodes := s.truth.held()
	for _, on := range nodes {
		for _, n := range on {
			if n == name {
				return false
			}
		}
	}
	return true
}

// drained drains a node, waits for it in another terminal, and gives it back.
func (s *site) drained(name string, o *oracle) {
	o.disturb()
	go func() { // ends when the node is empty
		s.must("olga", "gadm", "drain", name, "-r", "new fan", "--wait")
		if n := s.node(name); n.State != "drained" || n.Jobs != 0 || !s.empty(name) || n.Reason != "new fan (by olga)" && !strings.Contains(n.Reason, "new fan") {
			s.found.wrong("gadm drain --wait came back, and %s is %s (%s) with %d jobs, truly empty: %t", name, n.State, n.Reason, n.Jobs, s.empty(name))
		}
		time.Sleep(time.Hour)
		if !s.empty(name) {
			s.found.wrong("a job was started on %s, which is drained", name)
		}
		s.must("olga", "gadm", "resume", name)
	}()
}

// powerLoss switches a node off for some time.
func (s *site) powerLoss(name string, lasts time.Duration, o *oracle) {
	o.disturb()
	m := s.machine(name)
	go func() { // ends when it is back
		m.cut()
		if lasts > 10*time.Minute {
			time.Sleep(10 * time.Minute)
			if n := s.node(name); n.State != "lost" || n.Jobs != 0 {
				s.found.wrong("%s is off for ten minutes and is %s with %d jobs", name, n.State, n.Jobs)
			}
			lasts -= 10 * time.Minute
		}
		time.Sleep(lasts)
		m.start()
		time.Sleep(2 * time.Minute)
		if n := s.node(name); n.State != "up" {
			s.found.wrong("%s is back and is %s: %s", name, n.State, n.Reason)
		}
	}()
}

// reboots has nodes rebooted as they become empty.
func (s *site) reboots(names string, o *oracle) {
	o.disturb()
	before := map[string]int{}
	for _, m := range s.nodes {
		before[m.name] = m.boot
	}
	s.must("olga", "gadm", "drain", names, "-r", "new kernel", "--reboot")
	go func() { // ends when all are back
		for until := time.Now().Add(40 * time.Hour); time.Now().Before(until); time.Sleep(10 * time.Minute) {
			if s.up() == len(s.nodes) {
				break
			}
		}
		for _, m := range s.nodes {
			m.mu.Lock()
			boot := m.boot
			m.mu.Unlock()
			if n := s.node(m.name); strings.HasPrefix(m.name, "gpu") && (n.State != "up" || boot != before[m.name]+1) {
				s.found.wrong("%s was to be rebooted once: it is %s (%s), and was booted %d times", m.name, n.State, n.Reason, boot-before[m.name])
			}
		}
		o.disturb()
	}()
}

// reload changes the controller's file and has it taken; change is among what is said of it.
func (s *site) reload(l limits, o *oracle, change string) {
	o.disturb()
	s.configure(l)
	if text := s.must("root", "gadm", "policy", "check"); !strings.Contains(text, "+ "+change+"\n") {
		s.found.wrong("gadm policy check does not say what changes: %q", text)
	}
	s.must("root", "gadm", "policy", "reload")
	if text := s.must("root", "gadm", "policy", "check"); text != "" {
		s.found.wrong("after a reload gadm policy check says that something changes: %q", text)
	}
}

// expires makes a token for an hour, and looks at what is said when it is over.
func (s *site) expires() {
	s.must("root", "gadm", "token", "create", "-u", "guest", "--for", "1h", "--to", s.tokenFile("guest"))
	s.must("guest", "gqueue")
	go func() { // ends in an hour
		time.Sleep(61 * time.Minute)
		if a := s.command("guest", "gqueue"); a.code != 4 || !strings.Contains(a.err, "expired") {
			s.found.wrong("a token that has run out: exit code %d, %q", a.code, a.err)
		}
	}()
}

// evicted has all that runs on a node leave within the hour.
func (s *site) evicted(name string, o *oracle) {
	o.disturb()
	s.must("olga", "gadm", "drain", name, "-r", "moved", "--evict", "--deadline", "1h")
	go func() { // ends when the node is back
		time.Sleep(70 * time.Minute)
		if !s.empty(name) {
			s.found.wrong("%s was to be empty within the hour", name)
		}
		s.must("olga", "gadm", "resume", name)
	}()
}
