package slurmsite

import (
	"strconv"
	"strings"
)

// licenses are those of Licenses=NAME:COUNT,NAME. Those of other servers, which Slurm
// keeps in its database, are not in the file.
func (s *site) licenses() licenses {
	it, ok := s.conf["licenses"]
	if !ok || it.value == "" {
		return nil
	}
	out := licenses{}
	for one := range strings.SplitSeq(it.value, ",") {
		name, count, counted := strings.Cut(strings.TrimSpace(one), ":")
		n, err := int64(1), error(nil)
		if counted {
			n, err = strconv.ParseInt(count, 10, 32)
		}
		if name == "" || err != nil || n < 0 || n > 1_000_000 || strings.ContainsAny(name, "@*") {
			s.note(item{it.key, one, it.place}, "is no NAME or NAME:COUNT, and was left out")
			continue
		}
		out[name] += n
	}
	return out
}
