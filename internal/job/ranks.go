package job

import (
	"fmt"
	"math"
	"strings"

	"gbatch/internal/document"
)

// Own is what one rank has that the others have not.
type Own struct {
	// Hosts are names by which all ranks find this one's address. The first is its full name;
	// what is before the first dot of that is its container's host name.
	Hosts []string `json:"hosts,omitempty"`
	// Environment wins over the job's.
	Environment map[string]string `json:"environment,omitempty"`
}

const (
	maxNamedRanks = 1024 // every node is told of all of them
	maxRankHosts  = 32
	maxLabelBytes = 63 // of a host's name
	maxHostBytes  = 253
)

var ownFields = []field[Own]{
	{"hosts", func(d *decoder, n *node, o *Own) {
		d.elements(n, maxRankHosts, func(_ int, n *node) {
			var name string
			if d.str(n, &name, hostName) && hostName(name) == "" {
				o.Hosts = append(o.Hosts, name)
			}
		})
	}, false},
	{"environment", func(d *decoder, n *node, o *Own) {
		var c Docker
		readEnvironment(d, n, &c)
		o.Environment = c.Environment
	}, false},
}

func readRanks(d *decoder, n *node, to *Gbatch) {
	d.elements(n, maxNamedRanks, func(_ int, n *node) {
		var o Own
		document.Object(d, n, ownFields, &o)
		to.OfRanks = append(to.OfRanks, o)
	})
}

// hostName wants a name that programs can look up and that stands for no loopback address.
func hostName(s string) string {
	if len(s) > maxHostBytes {
		return fmt.Sprintf("has %d bytes, at most %d are allowed", len(s), maxHostBytes)
	}
	for label := range strings.SplitSeq(s, ".") {
		switch {
		case label == "" || len(label) > maxLabelBytes || label[0] == '-' || label[len(label)-1] == '-',
			strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-") != "":
			return fmt.Sprintf("must be a host's name: lower-case letters, digits and -, at most %d between dots, is %s", maxLabelBytes, document.Quote(s))
		}
	}
	if last := s[strings.LastIndexByte(s, '.')+1:]; last == "localhost" || strings.Trim(last, "0123456789") == "" {
		return fmt.Sprintf("must be no address and not localhost, is %s", document.Quote(s))
	}
	return ""
}

// checkRanks finds entries that are of no rank, and names that nobody would have.
func (d *decoder) checkRanks(gn *node, g *Gbatch) {
	if len(g.OfRanks) == 0 {
		return
	}
	if n := g.ranks(); len(g.OfRanks) != n {
		d.ProblemAt(gn, "ofRanks", fmt.Sprintf("has %d entries, and the job %d ranks", len(g.OfRanks), n), "give one for each, which may be empty")
	}
	for i, o := range g.OfRanks {
		if g.Launch != nil && len(o.Hosts) > 0 {
			d.ProblemAt(gn, "ofRanks", fmt.Sprintf("[%d].hosts cannot be combined with \"launch\": ranks of a batch script have the names of their nodes", i), "remove one of them")
			return
		}
	}
}

// checkShared finds what ranks cannot have that share a node.
func (d *decoder) checkShared(gn *node, s *Spec) {
	g := s.gbatch()
	share := func(gpus float64) bool { return gpus != math.Trunc(gpus) }
	parts := share(s.Request.Resources.GPUs)
	for i := range g.OtherGroups {
		parts = parts || share(g.OtherGroups[i].GPUs)
	}
	for _, c := range []struct {
		is         bool
		what, hint string
	}{
		{g.ranks() < 2, "a job of one rank", "set \"nodes\", or remove it"},
		{g.Launch != nil, "\"launch\", which shares tasks out to nodes", "say in launch how many tasks a node has"},
		{g.Exclusive || g.Privileged, "a job that has its nodes to itself", "remove it, or exclusive and privileged"},
		{g.AllMemory, "\"allMemory\"", "write how much each rank needs in cpuMemoryGb"},
		{s.Request.Resources.GPUs < 0, "request.resources.gpus -1, all GPUs of a node", "write how many each rank needs"},
		{parts, "a part of a GPU", "ask for whole GPUs"},
		{g.Network == NetworkHost, "network \"host\", in which two ranks would want the same ports", "remove one of them"},
	} {
		if c.is && g.RanksPerNode > 1 {
			d.ProblemAt(gn, "ranksPerNode", "cannot be combined with "+c.what, c.hint)
		}
	}
}

// own is what a rank has of its own.
func (s *Spec) own(rank int) Own {
	if list := s.gbatch().OfRanks; rank < len(list) {
		return list[rank]
	}
	return Own{}
}

// Hosts are the names by which the ranks of the job find one of them; nil: the job gives it
// none.
func (s *Spec) Hosts(rank int) []string { return s.own(rank).Hosts }
