package job

import (
	"fmt"
	"math"
	"slices"
)

// DividesGPUs says whether programs of the job have GPUs that others of them do not have.
func (s *Spec) DividesGPUs() bool {
	return s.gbatch().OwnGPUs != nil || slices.ContainsFunc(s.Programs(), func(b Before) bool { return b.OwnGPUs > 0 })
}

// checkDivision finds programs that would have more GPUs than there are, or others' too.
func (d *decoder) checkDivision(gn *node, s *Spec) {
	g := s.Gbatch
	if !s.DividesGPUs() {
		return
	}
	all := s.Request.Resources.GPUs
	switch {
	case all < 1 || all != math.Trunc(all):
		d.Problem(gn, fmt.Sprintf("divides the job's GPUs among its programs by ownGpus, and request.resources.gpus is %v", all), "ask for as many whole GPUs as they have together")
		return
	case len(g.OtherGroups) > 0:
		d.ProblemAt(gn, "otherGroups", "cannot be combined with ownGpus: the programs are the same on all nodes", "remove one of them")
	}
	taken := 0 // by programs that go on
	for i, b := range g.Before {
		if taken+b.OwnGPUs > int(all) {
			d.ProblemAt(gn, "before", fmt.Sprintf("[%d].ownGpus is %d, of %v, of which sidecars before it have %d", i, b.OwnGPUs, all, taken), "raise request.resources.gpus")
		}
		if b.Sidecar {
			taken += b.OwnGPUs
		}
	}
	for _, b := range g.Beside {
		taken += b.OwnGPUs
	}
	if g.OwnGPUs != nil {
		taken += *g.OwnGPUs
	}
	if taken > int(all) {
		d.Problem(gn, fmt.Sprintf("has programs that run at once with %d GPUs of their own, of %v", taken, all), "raise request.resources.gpus to what they have together")
	}
	for _, b := range s.Programs() {
		if b.GPUs {
			d.Problem(gn, fmt.Sprintf("gives the program %s all GPUs of the job by \"gpus\", and has others with GPUs of their own", b.Name), "write ownGpus: how many")
		}
	}
}
