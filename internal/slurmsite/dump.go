package slurmsite

import (
	"fmt"
	"strconv"
	"strings"
)

// account is one of a dump, with its users.
type account struct {
	item
	name, parent string
	values       map[string]item
	users        []*user
}

// user is one association of a user with an account.
type user struct {
	item
	name   string
	of     *account
	values map[string]item
}

// qos is a class of service, by the columns of its list.
type qos struct {
	item
	name   string
	values map[string]item
}

// top is the account above all.
const top = "root"

// readDump reads lines as Account - 'lab':Fairshare=3:Description='a: b'.
func (s *site) readDump(f File) error {
	parent, known := top, map[string]*account{}
	cluster, lines, number := false, 0, 0
	for line := range strings.SplitSeq(f.Text, "\n") {
		number++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		place := fmt.Sprintf("%s:%d", f.Name, number)
		kind, rest, ok := strings.Cut(line, " - ")
		fields := quoted(rest, ':')
		if !ok || len(fields) == 0 {
			return fmt.Errorf("%s: is no line of a dump, as Account - 'name':Fairshare=1; make one by: sacctmgr dump CLUSTER file=FILE", place)
		}
		lines++
		name, values := unquote(fields[0]), map[string]item{}
		for _, field := range fields[1:] {
			key, value, _ := strings.Cut(field, "=")
			values[strings.ToLower(key)] = item{key, unquote(value), place}
		}
		it := item{kind, name, place}
		switch kind {
		case "Cluster":
			cluster = true
			s.cluster(values)
		case "Parent":
			parent = name
		case "Account":
			if a := known[name]; a != nil {
				s.note(it, "is there twice; the first counts")
				continue
			}
			a := &account{item: it, name: name, parent: parent, values: values}
			known[name] = a
			s.accounts = append(s.accounts, a)
		case "User":
			if parent == top && name == "root" {
				continue // an admin anyhow
			}
			a := known[parent]
			if a == nil { // users of the topmost account
				a = &account{item: it, name: parent, parent: top}
				known[parent] = a
				s.accounts = append(s.accounts, a)
			}
			s.users++
			a.users = append(a.users, &user{item: it, name: name, of: a, values: values})
		default:
			s.note(it, "is not known here")
		}
		if len(s.accounts) > maxAccounts || s.users > maxUsers {
			return fmt.Errorf("%s: at most %d accounts and %d users of accounts are read", place, maxAccounts, maxUsers)
		}
	}
	if !cluster || lines < 2 {
		return fmt.Errorf("%s: has no Cluster line: is it a dump? make one by: sacctmgr dump CLUSTER file=FILE", f.Name)
	}
	return nil
}

func (s *site) cluster(values map[string]item) {
	for _, key := range sortedKeys(values) {
		switch it := values[key]; key {
		case "fairshare", "organization", "description":
		case "defaultqos":
			s.clusterQOS = it.value
		case "qos":
			s.note(it, "a class of service is for everybody")
		default:
			s.note(it, "is of the whole cluster: give it by policy.perUser or policy.perProject")
		}
	}
}

// quoted cuts at a byte outside of single quotes.
func quoted(text string, at byte) (fields []string) {
	inside, from := false, 0
	for i := range len(text) {
		switch {
		case text[i] == '\'':
			inside = !inside
		case text[i] == at && !inside:
			fields, from = append(fields, text[from:i]), i+1
		}
	}
	return append(fields, text[from:])
}

func unquote(s string) string { return strings.Trim(strings.TrimSpace(s), "'") }

// readQOS reads the list of classes of service.
func (s *site) readQOS(f File) error {
	var head []string
	number := 0
	for line := range strings.SplitSeq(f.Text, "\n") {
		number++
		line = strings.TrimSuffix(strings.TrimRight(line, "\r"), "|")
		if line == "" {
			continue
		}
		fields := strings.Split(line, "|")
		if head == nil {
			if head = fields; fields[0] != "Name" || len(fields) < 2 {
				return fmt.Errorf("%s: is no list of QOS; make one by: sacctmgr -P show qos", f.Name)
			}
			continue
		}
		q := &qos{item: item{"QOS", fields[0], fmt.Sprintf("%s:%d", f.Name, number)}, name: fields[0], values: map[string]item{}}
		for c, value := range fields[1:] {
			if value = strings.TrimSpace(value); value != "" && c+1 < len(head) {
				q.values[strings.ToLower(head[c+1])] = item{fields[0] + "." + head[c+1], value, q.place}
			}
		}
		if s.qos = append(s.qos, q); len(s.qos) > maxQOS {
			return fmt.Errorf("%s: at most %d classes of service are read", q.place, maxQOS)
		}
	}
	return nil
}

// count is a whole number of 0 or more; -1 means none is given, as it does in
// Slurm.
func (s *site) count(values map[string]item, keys ...string) int64 {
	for _, key := range keys {
		it, ok := values[key]
		if !ok {
			continue
		}
		delete(values, key)
		n, err := strconv.ParseInt(it.value, 10, 64)
		if err != nil || n > 1<<40 {
			s.note(it, "is no number")
			return 0
		}
		return max(n, 0)
	}
	return 0
}

// gpus is the number of GPUs in a list such as cpu=64,gres/gpu=6. The others in
// it are noted.
func (s *site) gpuCount(values map[string]item, keys ...string) (n int64) {
	for _, key := range keys {
		it, ok := values[key]
		if !ok {
			continue
		}
		delete(values, key)
		for one := range strings.SplitSeq(it.value, ",") {
			name, value, _ := strings.Cut(one, "=")
			count, err := strconv.ParseInt(value, 10, 64)
			if name != "gres/gpu" || err != nil || count > 1<<40 {
				s.note(item{it.key, one, it.place}, "only GPUs of all types together are bounded")
				continue
			}
			n = max(count, 0)
			if n == 0 {
				s.note(item{it.key, one, it.place}, "0 would be no bound here: keep jobs away by members or clusters")
			}
		}
	}
	return n
}
