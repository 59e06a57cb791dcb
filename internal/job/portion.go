package job

// Portion is which of a rank's GPUs, in the order of its grant, one of its programs has.
type Portion struct{ From, To int }

// Portions are those of the job's own program and of its others, as Spec.Programs has them.
// Those that run at the same time have none in common: the job's own has the first, then
// come those beside it, and sidecars have the last, from the end. A program that runs alone
// has the first, which are no sidecar's.
func (s *Spec) Portions(all int) (own Portion, others []Portion) {
	programs := s.Programs()
	others = make([]Portion, len(programs))
	if !s.DividesGPUs() {
		for i, b := range programs {
			if b.GPUs {
				others[i].To = all
			}
		}
		return Portion{0, all}, others
	}
	before := len(s.Gbatch.Before)
	end := all
	for i, b := range s.Gbatch.Before {
		if b.Sidecar {
			others[i] = Portion{end - b.OwnGPUs, end}
			end -= b.OwnGPUs
		} else {
			others[i] = Portion{0, b.OwnGPUs}
		}
	}
	beside := 0
	for _, b := range s.Gbatch.Beside {
		beside += b.OwnGPUs
	}
	own.To = end - beside
	if n := s.Gbatch.OwnGPUs; n != nil {
		own.To = *n
	}
	at := own.To
	for i, b := range s.Gbatch.Beside {
		others[before+i] = Portion{at, at + b.OwnGPUs}
		at += b.OwnGPUs
	}
	return own, others
}
