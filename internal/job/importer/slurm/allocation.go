package slurm

import (
	"cmp"
	"slices"

	"gbatch/internal/job"
)

// Allocation is the job of salloc and of srun outside of a job, by their options:
// nodes in which nothing runs but what srun starts there. Program has to take
// tasks in the first node's container, where gbatch puts it.
func Allocation(o Options, program ...string) (job.Submission, error) {
	s := newScript(o)
	s.spec = job.Spec{Gbatch: &job.Gbatch{Source: Source}}
	for _, d := range slices.Concat(s.environment(), s.words(o.Line, 0)) {
		s.apply(d)
	}
	s.spec.Name = cmp.Or(s.spec.Name, s.o.FileName, "interactive")
	s.amounts()
	s.constrain()
	s.reserve()
	s.before()
	s.place()
	if s.spec.Gbatch.Tasks != nil {
		s.problem(0, "--array", "is nothing that an allocation can have", "use sbatch")
	}
	l := s.spec.Gbatch.Launch
	l.Directory, l.Host = s.o.Directory, s.o.Host
	s.spec.Gbatch.Entrypoint = program[:1]
	s.spec.Request.Docker.Command = job.Command{Argv: program[1:]}
	s.container()
	s.tell()
	return s.result()
}
