package srun

import (
	"errors"
	"fmt"
	"slices"
)

// where checks what is said of nodes by their names, or by how many are passed over,
// against how many nodes the step is for. As with Slurm that is all of the job's
// where -N says no number: -w names some that are among them. The sentences are
// Slurm's.
func (r *run) where(fewer bool) error {
	o, q, all := r.o, &r.o.q, len(r.info.Nodes)
	q.On, q.Not = unique(q.On), unique(q.Not)
	if q.Relative > 0 && len(q.On)+len(q.Not) > 0 {
		return errors.New("-r,--relative not allowed with -w,--nodelist or -x,--exclude.")
	}
	for _, name := range q.On {
		if slices.Contains(q.Not, name) {
			return fmt.Errorf("Requested node %s is also in the excluded list.", name)
		}
	}
	least, by := q.Nodes, "--nodes"
	if least == 0 && o.jobNodes > 0 {
		least, by = o.jobNodes, "SLURM_JOB_NUM_NODES"
	}
	if q.Tasks > 0 && q.Tasks < least {
		least, by = q.Tasks, "--nodes"
	}
	left := all - len(q.Not)
	switch {
	case least == 0: // nobody says how many: those that are named
		return nil
	case left < 1:
		return errors.New("Hostlist is empty!  Can't run job.")
	case least > left && len(q.Not) > 0:
		return fmt.Errorf("Only allocated %d nodes asked for %d", left, least)
	case q.Relative > 0 && q.Relative+least > all:
		return fmt.Errorf("--relative and %s option incompatible with count of allocated nodes (%d+%d>%d)", by, q.Relative, least, all)
	case len(q.On) == 0:
		return nil
	}
	most := max(q.MaxNodes, least)
	if fewer {
		most = least
	}
	if len(q.On) > most {
		if !fewer {
			r.warn("Required nodelist includes more nodes than permitted by max-node count (%d > %d). Eliminating nodes from the nodelist.", len(q.On), most)
		}
		q.On = q.On[:most]
	}
	if len(q.On) >= least { // as many as are named; else as many as there may be
		least, most = len(q.On), len(q.On)
	}
	q.Nodes, q.MaxNodes = least, most
	return nil
}

// unique are names in their order, each once.
func unique(names []string) (list []string) {
	for _, name := range names {
		if !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return list
}
