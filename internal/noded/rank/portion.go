package rank

import "gbatch/internal/job"

// portion is which of a rank's GPUs, in the order of its grant, one of its programs has.
type portion struct{ from, to int }

// portions are those of the job's own program and of its others, as Spec.Programs has them.
// Those that run at the same time have none in common: the job's own has the first, then
// come those beside it, and sidecars have the last, from the end. A program that runs alone
// has the first, which are no sidecar's.
func portions(s *job.Spec, all int) (own portion, others []portion) {
	programs := s.Programs()
	others = make([]portion, len(programs))
	if !s.DividesGPUs() {
		for i, b := range programs {
			if b.GPUs {
				others[i].to = all
			}
		}
		return portion{0, all}, others
	}
	before := len(s.Gbatch.Before)
	end := all
	for i, b := range s.Gbatch.Before {
		if b.Sidecar {
			others[i] = portion{end - b.OwnGPUs, end}
			end -= b.OwnGPUs
		} else {
			others[i] = portion{0, b.OwnGPUs}
		}
	}
	beside := 0
	for _, b := range s.Gbatch.Beside {
		beside += b.OwnGPUs
	}
	own.to = end - beside
	if n := s.Gbatch.OwnGPUs; n != nil {
		own.to = *n
	}
	at := own.to
	for i, b := range s.Gbatch.Beside {
		others[before+i] = portion{at, at + b.OwnGPUs}
		at += b.OwnGPUs
	}
	return own, others
}

// having is the recipe of a program that has so many of the rank's GPUs, and of no others.
func (r *recipe) having(p portion) recipe {
	at := *r
	at.order.Allocation.GPUs = r.order.Allocation.GPUs[p.from:p.to]
	return at
}
