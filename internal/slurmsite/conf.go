package slurmsite

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"gbatch/internal/job"
)

// node is a machine of slurm.conf.
type node struct {
	name, address string
	cores         int
	memMiB        int64
	gpus          string // as Gres has them
	features      []string
	reserveCores  int
	reserveMiB    int64
}

func (s *site) readConf(f File) error {
	var nodes, partitions map[string]item // the values of DEFAULT lines
	lines := strings.Split(f.Text, "\n")
	for i := 0; i < len(lines); i++ {
		place := fmt.Sprintf("%s:%d", f.Name, i+1)
		line := lines[i]
		for strings.HasSuffix(strings.TrimRight(line, "\r"), "\\") && i+1 < len(lines) {
			i++
			line = strings.TrimSuffix(strings.TrimRight(line, "\r"), "\\") + " " + lines[i]
		}
		if at := strings.IndexByte(line, '#'); at >= 0 && (at == 0 || line[at-1] != '\\') {
			line = line[:at]
		}
		words := split(strings.TrimSpace(strings.ReplaceAll(line, "\r", "")))
		if len(words) == 0 {
			continue
		}
		if strings.EqualFold(words[0], "include") {
			if err := s.include(words[1:], place); err != nil {
				return err
			}
			continue
		}
		items := map[string]item{}
		var first string
		for _, w := range words {
			key, value, ok := strings.Cut(w, "=")
			it := item{key, strings.TrimSpace(value), place}
			if !ok {
				s.note(it, "is no KEY=VALUE, and was not read")
				continue
			}
			if first == "" {
				first = strings.ToLower(key)
			}
			items[strings.ToLower(key)] = it
		}
		switch first {
		case "nodename":
			nodes = s.nodeLine(items, nodes)
		case "partitionname":
			partitions = s.partitionLine(items, partitions)
		default:
			for _, key := range sortedKeys(items) {
				s.single(key, items[key])
			}
		}
	}
	return nil
}

func (s *site) include(names []string, place string) error {
	if len(names) != 1 || s.in.Open == nil {
		return fmt.Errorf("%s: Include needs one name of a file that can be read", place)
	}
	if s.includes++; s.includes > maxIncludes {
		return fmt.Errorf("%s: more than %d files are included", place, maxIncludes)
	}
	text, err := s.in.Open(names[0])
	if err != nil {
		return fmt.Errorf("%s: Include: %w", place, err)
	}
	if len(text) > maxFile {
		return fmt.Errorf("%s: %s has more than %d bytes", place, names[0], maxFile)
	}
	return s.readConf(File{names[0], string(text)})
}

// take removes one of these keys from a line's items, or from its defaults.
func take(items, defaults map[string]item, keys ...string) (item, bool) {
	for _, from := range []map[string]item{items, defaults} {
		for _, k := range keys {
			if it, ok := from[k]; ok {
				if value := it.value; value != "" {
					delete(items, k)
					return it, true
				}
			}
		}
	}
	return item{}, false
}

func (s *site) nodeLine(items, defaults map[string]item) map[string]item {
	name := items["nodename"]
	if strings.EqualFold(name.value, "DEFAULT") {
		delete(items, "nodename")
		return items
	}
	delete(items, "nodename")
	names, err := job.ParseNodes(name.value)
	if err != nil || len(names)+len(s.nodes) > maxNodes {
		s.note(name, "is no list of nodes that can be read: %v", err)
		return defaults
	}
	number := func(keys ...string) int64 {
		it, ok := take(items, defaults, keys...)
		n, err := strconv.ParseInt(it.value, 10, 64)
		if ok && (err != nil || n < 0 || n > 1<<40) {
			s.note(it, "is no number")
			return 0
		}
		return n
	}
	var n node
	cpus, boards, sockets := number("cpus", "procs"), number("boards"), number("sockets", "socketsperboard")
	cores, threads := number("corespersocket"), number("threadspercore")
	n.cores = int(max(boards, 1) * max(sockets, 1) * max(cores, 1) * max(threads, 1))
	if cpus > 0 {
		n.cores = int(cpus)
	}
	n.memMiB = number("realmemory")
	n.reserveCores, n.reserveMiB = int(number("corespeccount")), number("memspeclimit")
	if it, ok := take(items, defaults, "feature", "features"); ok {
		n.features = strings.Split(it.value, ",")
	}
	if it, ok := take(items, defaults, "gres"); ok {
		n.gpus = s.gpus(it)
	}
	address, _ := take(items, defaults, "nodeaddr")
	addresses, err := job.ParseNodes(address.value)
	take(items, nil, "nodehostname")
	for i, name := range names {
		one := n
		one.name = name
		if err == nil && len(addresses) == len(names) && addresses[i] != name {
			one.address = addresses[i]
		}
		s.nodes = append(s.nodes, &one)
	}
	s.leftOver(items, nodeKeys)
	return defaults
}

// gpus are the GPUs of a Gres; other resources are noted.
func (s *site) gpus(it item) string {
	var found []string
	for one := range strings.SplitSeq(it.value, ",") {
		one, _, _ = strings.Cut(one, "(")
		if parts := strings.Split(one, ":"); parts[0] == "gpu" {
			found = append(found, strings.Join(parts[1:], " x "))
			continue
		}
		s.note(item{it.key, one, it.place}, "only GPUs are found and given out; give a licence or another device as a feature, or by gpu.devices in gnoded.yaml")
	}
	return strings.Join(found, ", ")
}

// partitionLine takes a line of a partition, over the values of the DEFAULT line.
func (s *site) partitionLine(items, defaults map[string]item) map[string]item {
	name := items["partitionname"]
	delete(items, "partitionname")
	if strings.EqualFold(name.value, "DEFAULT") {
		return items
	}
	p := &partition{item: name, values: maps.Clone(defaults)}
	if p.values == nil {
		p.values = map[string]item{}
	}
	maps.Copy(p.values, items)
	if both, ok := p.values["priority"]; ok { // of old: both in one
		delete(p.values, "priority")
		for _, key := range []string{"priorityjobfactor", "prioritytier"} {
			if _, ok := p.values[key]; !ok {
				p.values[key] = both
			}
		}
	}
	p.most, p.factor = p.values["maxtime"].value, s.bound(p.values["priorityjobfactor"])
	s.partitions = append(s.partitions, p)
	return defaults
}

// nodeList says whether a value is a list of nodes.
func (s *site) nodeList(it item) bool {
	names, err := job.ParseNodes(it.value)
	if err != nil || len(names) > maxNodes {
		s.note(it, "is no list of nodes that can be read: %v", err)
		return false
	}
	return true
}

// leftOver notes the keys of a line that nothing was made of.
func (s *site) leftOver(items map[string]item, known map[string]string) {
	for _, key := range sortedKeys(items) {
		why, ok := known[key]
		if !ok {
			why = unknownKey
		}
		s.note(items[key], "%s", why)
	}
}

// single takes a key that stands once in the file.
func (s *site) single(key string, it item) {
	if slices.Contains(usedKeys, key) {
		s.conf[key] = it
		return
	}
	why, ok := confKeys[key]
	for _, k := range confPrefixes {
		if !ok && strings.HasPrefix(key, k.prefix) {
			why, ok = k.why, true
		}
	}
	if !ok {
		why = unknownKey
	}
	s.note(it, "%s", why)
}
