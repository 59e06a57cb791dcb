package ask

import (
	"net/url"
	"path"
	"strings"

	"gbatch/internal/job"
	"gbatch/sched"
)

// storage is what a job needs of the site's storage: what it mounts, and what lies
// behind file: URIs of its inputs and outputs. What it mounts may be read-only, as
// the site has it; where outputs go it is not.
func storage(s *job.Spec) (list []sched.Storage) {
	for _, m := range s.Mounts() {
		switch m.HostPath {
		case job.TmpfsHostPath, job.ScratchHostPath:
		case job.SSHHostPath:
			list = append(list, sched.Storage{Path: m.HostPath})
		default:
			at := m.HostPath
			if before, _, ok := strings.Cut(at, job.RankWord); ok { // one of each rank lies in there
				at = before[:strings.LastIndexByte(before, '/')+1]
			}
			list = append(list, sched.Storage{Path: path.Clean(at)})
		}
	}
	if s.Gbatch == nil {
		return list
	}
	for _, in := range s.Gbatch.Inputs {
		list = appendURI(list, in.URI, false)
	}
	for _, out := range s.Gbatch.Outputs {
		list = appendURI(list, out.URI, true)
	}
	return list
}

// appendURI adds the directory of a file: URI, as far as it is the same for every
// task: names of the job are put in for words in braces.
func appendURI(list []sched.Storage, uri string, write bool) []sched.Storage {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "file" {
		return list
	}
	dir, _, _ := strings.Cut(u.Path, "{")
	dir = path.Clean(dir[:strings.LastIndexByte(dir, '/')+1])
	return append(list, sched.Storage{Path: dir, Write: write})
}
