// Package slurmsite turns the files that say what a Slurm site is (slurm.conf, a
// dump of sacctmgr and its list of QOS) into gbatch's configuration. What means
// the same becomes a key; each other line becomes a note that says why not, with
// its place. It reads no file itself and decides nothing that the files do not say.
package slurmsite

import (
	"fmt"
	"strings"
)

// Input is the files of a site. Those that are empty are not there.
type Input struct {
	Conf File // slurm.conf
	Dump File // of sacctmgr dump
	QOS  File // of sacctmgr -P show qos

	// Open reads a file that slurm.conf includes, by its name as it stands there.
	Open func(name string) ([]byte, error)
}

// File is a text with its name for notes.
type File struct{ Name, Text string }

// Bounds of what is read. Whoever imports a site may have the files from somebody
// else, so none of them can take memory or time that these do not allow.
const (
	MaxText     = 16 << 20 // of all files together, in bytes
	maxLine     = 64 << 10 // of a line with those that it goes on in, in bytes
	maxWords    = 200      // of a line of slurm.conf
	maxIncludes = 64
	maxNodes    = 100_000
	maxAccounts = 10_000
	maxUsers    = 200_000 // associations of users with accounts
	maxQOS      = 1000
	maxNotes    = 10_000
	maxDepth    = 64 // of accounts within accounts, for the bounds of their users
)

// Note is a line, or a part of one, that did not become a key.
type Note struct {
	Place string // FILE:LINE
	What  string // the key, with its value
	Why   string
}

func (n Note) String() string { return fmt.Sprintf("%s: %s: %s", n.Place, n.What, n.Why) }

// item is one Key=Value of a file.
type item struct {
	key, value, place string
}

// site is what has been understood so far.
type site struct {
	in    Input
	notes []Note

	conf       map[string]item // single keys of slurm.conf, in lower case
	nodes      []node
	partitions []*partition
	accounts   []*account
	qos        []*qos
	admins     []string
	operators  []string
	clusterQOS string
	users      int // associations
	includes   int
	read       int // bytes
	more       int // notes that were not kept
}

func (s *site) note(i item, why string, a ...any) {
	if len(s.notes) == maxNotes {
		s.more++
		return
	}
	what := short(i.key, 80)
	switch {
	case strings.HasSuffix(strings.ToLower(i.key), "pass"): // as AccountingStoragePass
		what += " (not shown)"
	case i.value != "":
		what += "=" + short(i.value, 80)
	}
	s.notes = append(s.notes, Note{i.place, what, short(fmt.Sprintf(why, a...), 400)})
}

func short(text string, bytes int) string {
	if len(text) > bytes {
		return text[:bytes] + "..."
	}
	return text
}

// Result is the configuration as text, and what did not get into it.
type Result struct {
	Gctld string // gctld.yaml
	Nodes string // what to write into the nodes' gnoded.yaml
	Notes []Note
	More  int // notes beyond the first 10,000, which are not kept
}

// Convert reads the files. An error is a file that is none of these.
func Convert(in Input) (Result, error) {
	s := &site{in: in, conf: map[string]item{}}
	for _, f := range []struct {
		File
		read func(*site, File) error
	}{{in.Conf, (*site).readConf}, {in.QOS, (*site).readQOS}, {in.Dump, (*site).readDump}} {
		if f.Text == "" {
			continue
		}
		if err := s.taken(f.File); err != nil {
			return Result{}, err
		}
		if err := f.read(s, f.File); err != nil {
			return Result{}, err
		}
	}
	text, err := write(s.config())
	if err != nil {
		return Result{}, err
	}
	return Result{Gctld: text, Nodes: s.nodeText(), Notes: s.notes, More: s.more}, nil
}

// taken counts a file's bytes, and refuses it when there are too many.
func (s *site) taken(f File) error {
	if s.read += len(f.Text); s.read > MaxText {
		return fmt.Errorf("%s: with it there are more than %d bytes to read", f.Name, MaxText)
	}
	for line := range strings.SplitSeq(f.Text, "\n") {
		if len(line) > maxLine {
			return fmt.Errorf("%s: %q is the beginning of a line of more than %d bytes", f.Name, line[:20], maxLine)
		}
	}
	return nil
}

// split cuts at blanks outside of quotes.
func split(line string) (words []string) {
	word, quote := strings.Builder{}, false
	for _, c := range line {
		switch {
		case c == '"':
			quote = !quote
		case !quote && (c == ' ' || c == '\t'):
			if word.Len() > 0 {
				words = append(words, word.String())
				word.Reset()
			}
		default:
			word.WriteRune(c)
		}
	}
	if word.Len() > 0 {
		words = append(words, word.String())
	}
	return words
}
