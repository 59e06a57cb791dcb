package slurmsite

import (
	"slices"
	"strconv"
	"strings"
)

// standardProject is that of a controller that names none.
const standardProject = "default"

// projects are the accounts.
func (s *site) projects(c *config) {
	if len(s.accounts) == 0 {
		return
	}
	of := map[string][]*user{} // associations by user
	known, above := map[string]*account{}, map[string]bool{}
	for _, a := range s.accounts {
		known[a.name], above[a.parent] = a, true
		for _, u := range a.users {
			of[u.name] = append(of[u.name], u)
		}
	}
	for _, a := range s.accounts {
		p := project{Name: a.name, UserShares: map[string]int64{}}
		if a.parent != top && a.name != top {
			p.Parent = a.parent
		}
		p.Shares = s.shares(a.values)
		for _, key := range []string{"grpjobs", "grpsubmitjobs", "grpsubmit", "grptres", "grptresrunmins"} {
			if it, ok := a.values[key]; ok && above[a.name] {
				s.note(it, "bounds the jobs of the project itself, not those of the projects below it")
			}
		}
		p.Limits = bounds{Running: s.count(a.values, "grpjobs"), Queued: s.submitted(a.values, "grpsubmitjobs", "grpsubmit"),
			GPUs: s.gpuCount(a.values, "grptres"), GPUMinutes: s.gpuCount(a.values, "grptresrunmins")}
		if it, ok := a.values["grptresmins"]; ok {
			s.note(it, "becomes a budget in GPU-minutes as billed, which never fades; budgetPeriod: month makes it one for each month")
			p.Budget = s.gpuCount(a.values, "grptresmins")
		}
		for _, u := range a.users {
			p.Members = append(p.Members, u.name)
			if n := s.shares(u.values); n > 1 {
				p.UserShares[u.name] = n
			}
		}
		p.Members = sorted(p.Members)
		if len(p.Members) == 0 {
			p.Members = []string{nobody}
			s.note(a.item, "has no users of its own: it has the member %q, since a project without members is everybody's", nobody)
		}
		c.Projects = append(c.Projects, p)
	}
	s.boundUsers(c, of, known)
	for _, a := range s.accounts {
		s.rest(a.values, accountKeys)
	}
	none := ""
	if !slices.ContainsFunc(c.Projects, func(p project) bool { return p.Name == standardProject }) {
		c.DefaultProject = &none
	}
}

// nobody is the member of projects that only hold others.
const nobody = "nobody-of-slurm"

const submits = "bounds the jobs of each of its users that wait, without those that run"

// accountKeys and userKeys are keys of a dump that become nothing.
var (
	accountKeys = map[string]string{"description": "", "organization": "", "qos": "a class of service is for everybody", "defaultqos": "one class is the default of all: policy.defaultQos",
		"maxjobs": "", "maxsubmitjobs": submits, "maxsubmit": submits}
	userKeys = map[string]string{"defaultaccount": "a job says its project; defaultProject is that of all who do not", "adminlevel": "", "qos": "a class of service is for everybody", "defaultqos": "one class is the default of all: policy.defaultQos",
		"partition": "who may use a partition is said there: partitions[].users and projects", "coordinator": "projects have no coordinators: an operator changes members", "wckeys": "is not known", "defaultwckey": "is not known"}
)

// rest notes what is left; keys with no reason were taken, or say nothing.
func (s *site) rest(values map[string]item, known map[string]string) {
	for _, key := range sortedKeys(values) {
		if why, ok := known[key]; !ok {
			s.note(values[key], "%s", unknownKey)
		} else if why != "" {
			s.note(values[key], "%s", why)
		}
	}
}

// shares of an association; 0 where it has one, as it does by itself.
func (s *site) shares(values map[string]item) int64 {
	it, ok := values["fairshare"]
	if !ok {
		return 0
	}
	if strings.EqualFold(it.value, "parent") {
		s.note(it, "has no shares of its own in Slurm; here it has 1")
		delete(values, "fairshare")
		return 0
	}
	n := s.count(values, "fairshare")
	if n == 0 {
		s.note(it, "0 shares are 1 here")
	}
	if n == 1 {
		return 0
	}
	return n
}

// boundUsers bounds each user: what an association, or the nearest account above it,
// says of one user's jobs. Here a bound is of all jobs of a user together.
func (s *site) boundUsers(c *config, of map[string][]*user, known map[string]*account) {
	for _, name := range sortedKeys(of) {
		admin, operator := false, false
		for _, u := range of[name] {
			if level := u.values["adminlevel"].value; name == "root" {
				continue // may everything on the controller's machine
			} else if strings.HasPrefix(level, "Admin") {
				admin = true
			} else if strings.HasPrefix(level, "Operator") {
				operator = true
			}
		}
		if admin {
			s.admins = append(s.admins, name)
		} else if operator {
			s.operators = append(s.operators, name)
		}
		var found []bounds
		for _, u := range of[name] {
			b := bounds{Running: inherited(u, known, "maxjobs"), Queued: inherited(u, known, "maxsubmitjobs", "maxsubmit")}
			b.GPUs = s.gpuCount(u.values, "grptres")
			if n := s.count(u.values, "grpjobs"); n > 0 {
				b.Running = n
			}
			s.submitted(u.values, "maxsubmitjobs", "maxsubmit")
			delete(u.values, "maxjobs")
			s.rest(u.values, userKeys)
			found = append(found, b)
		}
		switch {
		case !slices.ContainsFunc(found, func(b bounds) bool { return b != bounds{} }):
		case len(found) == 1:
			c.Policy.Users[name] = found[0]
		default:
			s.note(of[name][0].item, "has bounds that differ by account; here a user has them of all jobs together: give policy.users.%s", name)
		}
	}
}

// inherited is a bound of a user's association, or of the nearest account above.
func inherited(u *user, known map[string]*account, keys ...string) int64 {
	values, a := u.values, u.of
	for range maxDepth {
		for _, key := range keys {
			if it, ok := values[key]; ok {
				n, _ := strconv.ParseInt(it.value, 10, 64)
				return max(n, 0)
			}
		}
		if a == nil {
			break
		}
		values, a = a.values, known[a.parent]
	}
	return 0
}
