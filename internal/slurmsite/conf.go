package slurmsite

import (
	"fmt"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gbatch/internal/job/nodelist"
)

// nodeLine is what a line of slurm.conf says of its machines.
type nodeLine struct {
	cores        int
	memMiB       int64
	gpus         string // as Gres has them
	features     []string
	reserveCores int
	reserveMiB   int64
}

// node is one of them.
type node struct {
	name, address string
	line          *nodeLine
}

func (s *site) readConf(f File) error {
	var nodes, partitions map[string]item // the values of DEFAULT lines
	for number, line := range wholeLines(f.Text) {
		if len(line) > maxLine {
			return fmt.Errorf("%s:%d: the line goes on for more than %d bytes", f.Name, number, maxLine)
		}
		if at := strings.IndexByte(line, '#'); at >= 0 && (at == 0 || line[at-1] != '\\') {
			line = line[:at]
		}
		words := split(strings.TrimSpace(strings.ReplaceAll(line, "\r", "")))
		if len(words) == 0 {
			continue
		}
		place := fmt.Sprintf("%s:%d", f.Name, number)
		if len(words) > maxWords {
			return fmt.Errorf("%s: has more than %d words", place, maxWords)
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
			nodes = s.nodesOf(items, nodes)
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
	f := File{names[0], string(text)}
	if err := s.taken(f); err != nil {
		return fmt.Errorf("%s: Include: %w", place, err)
	}
	return s.readConf(f)
}

// wholeLines are the lines of a text with their numbers. One that ends in a
// backslash goes on in the next.
func wholeLines(text string) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		number, first := 0, 0
		var begun strings.Builder
		for line := range strings.SplitSeq(text, "\n") {
			if number++; first == 0 {
				first = number
			}
			if part, more := strings.CutSuffix(strings.TrimRight(line, "\r"), "\\"); more {
				if begun.Len() <= maxLine { // more is refused anyhow
					begun.WriteString(part + " ")
				}
				continue
			}
			if begun.Len() > 0 {
				line = begun.String() + line
				begun.Reset()
			}
			if !yield(first, line) {
				return
			}
			first = 0
		}
		if first != 0 {
			yield(first, begun.String())
		}
	}
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

// nodesOf takes a line of nodes, and returns the values of the DEFAULT line.
func (s *site) nodesOf(items, defaults map[string]item) map[string]item {
	name := items["nodename"]
	if strings.EqualFold(name.value, "DEFAULT") {
		delete(items, "nodename")
		return items
	}
	delete(items, "nodename")
	count, err := nodelist.Count(name.value)
	switch {
	case err != nil:
		s.note(name, notList, err)
		return defaults
	case count+len(s.nodes) > maxNodes:
		s.note(name, "more than %d nodes are not taken", maxNodes)
		return defaults
	}
	names, _ := nodelist.Parse(name.value)
	number := func(keys ...string) int64 {
		it, ok := take(items, defaults, keys...)
		n, err := strconv.ParseInt(it.value, 10, 64)
		if ok && (err != nil || n < 0 || n > 1<<40) {
			s.note(it, "is no number")
			return 0
		}
		return n
	}
	var n nodeLine
	cpus, boards, sockets := number("cpus", "procs"), number("boards"), number("sockets", "socketsperboard")
	cores, threads := number("corespersocket"), number("threadspercore")
	n.cores = int(max(boards, 1) * max(sockets, 1) * max(cores, 1) * max(threads, 1))
	if cpus > 0 {
		n.cores = int(cpus)
	}
	n.memMiB = number("realmemory")
	n.reserveCores, n.reserveMiB = int(number("corespeccount")), number("memspeclimit")
	if it, ok := take(items, defaults, "feature", "features"); ok {
		n.features = s.features(it)
	}
	if it, ok := take(items, defaults, "gres"); ok {
		n.gpus = s.gpus(it)
	}
	address, _ := take(items, defaults, "nodeaddr")
	var addresses []string
	if count, err := nodelist.Count(address.value); err == nil && count == len(names) {
		addresses, _ = nodelist.Parse(address.value)
	}
	take(items, nil, "nodehostname")
	for i, name := range names {
		one := node{name: name, line: &n}
		if addresses != nil && addresses[i] != name && addressForm.MatchString(addresses[i]) {
			one.address = addresses[i]
		}
		s.nodes = append(s.nodes, one)
	}
	s.leftOver(items, nodeKeys)
	return defaults
}

// What may stand in gnoded.yaml without quotes.
var (
	featureForm = regexp.MustCompile(`^[A-Za-z0-9_./:=+-]{1,127}[A-Za-z0-9_]$`)
	addressForm = regexp.MustCompile(`^[A-Za-z0-9._:-]{1,252}[A-Za-z0-9]$`)
)

// maxFeatures is how many a node may have here.
const maxFeatures = 64

func (s *site) features(it item) (out []string) {
	for one := range strings.SplitSeq(it.value, ",") {
		if !featureForm.MatchString(one) || len(out) == maxFeatures {
			s.note(item{it.key, one, it.place}, "features have 2 to 128 letters, digits and _ . / : = + - here, and a node has at most %d", maxFeatures)
			continue
		}
		out = append(out, one)
	}
	return out
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
	if len(s.partitions) == maxPartitions {
		s.note(name, "at most %d partitions are taken", maxPartitions)
		return defaults
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
	if _, err := nodelist.Count(it.value); err != nil {
		s.note(it, notList, err)
		return false
	}
	return true
}

const notList = "is no list of nodes that can be read: %v"

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
