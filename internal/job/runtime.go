package job

import (
	"fmt"

	"gbatch/internal/document"
)

// CheckRuntime says what is wrong with the name of a runtime, or "".
func CheckRuntime(s string) string {
	if len(s) > 32 {
		return "must have at most 32 characters"
	}
	return word(".-")(s)
}

// Runtime is the runtime that the job asks for, by the name that nodes have for
// it; empty: the usual one.
func (s *Spec) Runtime() string { return s.gbatch().Runtime }

// RequireRuntime has the job run by that runtime and no other, as its project
// wants. It returns the field that is in the way and why, or "" twice.
func (s *Spec) RequireRuntime(name string) (field, why string) {
	if is := s.Runtime(); is != "" && is != name {
		return "runtime", fmt.Sprintf("must be %s, or left out, is %s", document.Quote(name), document.Quote(is))
	}
	if s.Gbatch == nil {
		s.Gbatch = &Gbatch{}
	}
	s.Gbatch.Runtime = name
	if field := s.besideRuntime(); field != "" {
		return field, runtimeAlone
	}
	return "", ""
}

const runtimeAlone = "cannot be had from another runtime"

// besideRuntime is a field that says what only the usual runtime does, or "".
func (s *Spec) besideRuntime() string {
	switch {
	case s.Runtime() == "":
		return ""
	case s.Privileged():
		return "privileged"
	case len(s.Capabilities()) > 0:
		return "capabilities"
	case s.Network() == NetworkHost:
		return "network"
	case len(s.gbatch().Before) > 0:
		return "before"
	case len(s.gbatch().Beside) > 0:
		return "beside"
	}
	return ""
}

// checkRuntime finds what cannot be together. gn is the document's "gbatch".
func (d *decoder) checkRuntime(gn *node, s *Spec) {
	if field := s.besideRuntime(); field != "" {
		d.ProblemAt(gn, field, `cannot be combined with "runtime": it `+runtimeAlone, "remove one of them")
	}
}
