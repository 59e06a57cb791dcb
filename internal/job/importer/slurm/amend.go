package slurm

import (
	"fmt"
	"maps"
	"slices"

	"gbatch/internal/job"
	"gbatch/internal/job/sizes"
	"gbatch/oci/ref"
)

// Takes says whether a name, as --nodes or -N, is an option of sbatch, and whether
// it takes the next word as its value.
func Takes(name string) (value, known bool) {
	o, known := allOptions().find(name)
	return o.needsValue(), known
}

// Names are the long names of all options.
func Names() []string {
	var names []string
	for _, o := range allOptions() {
		names = append(names, o.long)
	}
	return names
}

// Counts says whether some of these options count tasks, which only a batch
// script has.
func Counts(line []string) bool {
	s := newScript(Options{})
	return slices.ContainsFunc(s.words(line, 0), func(d directive) bool {
		o, _ := s.known.find(d.name)
		return o.tasks
	})
}

// Amend applies options of sbatch to a job that is no batch script: what they
// say of amounts is of each node. Problems have the options as their path.
func Amend(sub job.Submission, line []string, o Options) (job.Submission, error) {
	s := newScript(o)
	s.spec = sub.Spec
	g := job.Gbatch{}
	if s.spec.Gbatch != nil {
		g = *s.spec.Gbatch
	}
	g.Labels = maps.Clone(g.Labels)
	g.AnyFeatures = slices.Clip(g.AnyFeatures)
	s.spec.Request.Resources.Features = slices.Clip(s.spec.Request.Resources.Features)
	s.spec.Gbatch = &g
	s.spec.Request.Docker.Environment = maps.Clone(s.spec.Request.Docker.Environment)
	for _, d := range s.words(line, 0) {
		if opt, _ := s.known.find(d.name); opt.tasks {
			s.problem(0, d.name, "is about the tasks of a batch script, and this job is none", "give -c, --mem and --gpus of each node, or a command with --wrap")
			continue
		}
		s.apply(d)
	}
	s.amendAmounts()
	s.nodes = max(g.Nodes, 1)
	s.constrain()
	s.reserve()
	s.amendFiles()
	s.mails()
	if s.image != "" {
		r, creds, err := ref.Parse(Image(s.image))
		if err != nil {
			s.problem(0, "--container-image", "is no image reference", "write "+ref.Forms)
		} else {
			s.spec.Request.Docker.Image, g.ImageAlias, sub.Registry = r.String(), "", creds
		}
	}
	if len(s.problems) > 0 {
		return job.Submission{}, s.problems
	}
	sub.Spec, sub.Notes = s.spec, append(slices.Clip(sub.Notes), s.notes...)
	return sub, nil
}

// amendAmounts is amounts for a job that has some.
func (s *script) amendAmounts() {
	r := &s.spec.Request.Resources
	if g := s.gpusPerNode; g.given {
		r.GPUs = float64(g.Count)
		if g.Model != "" {
			r.GPUModel = []string{g.Model}
		}
	}
	whole := int(r.GPUs)
	if n := s.cpusPerGPU * whole; n > 0 {
		r.CPUs = n
	}
	switch {
	case s.memPerCPU == 0 || s.memPerGPU == 0:
		s.spec.Gbatch.AllMemory = true
	case s.memPerCPU > 0 && s.memPerGPU > 0:
		s.problem(0, "--mem-per-gpu", "cannot be combined with --mem-per-cpu", "keep one of them")
	case s.memPerCPU > 0:
		r.CPUMemoryGB = max(sizes.GiB(s.memPerCPU*int64(r.CPUs)), 1)
	case s.memPerGPU > 0 && whole < 1, s.cpusPerGPU > 0 && whole < 1:
		s.problem(0, "--mem-per-gpu", fmt.Sprintf("and --cpus-per-gpu want a number of GPUs, and the job has %v", r.GPUs), "give -c and --mem")
	case s.memPerGPU > 0:
		r.CPUMemoryGB = max(sizes.GiB(s.memPerGPU*int64(whole)), 1)
	}
}

// amendFiles is files for a job that may have some. What is not named stays.
func (s *script) amendFiles() {
	io := job.Stdio{}
	if had := s.spec.Gbatch.Stdio; had != nil {
		io = *had
	}
	if s.stdio.Output != "" {
		io.Output = s.stdio.Output
	}
	if s.stdio.Error != "" {
		io.Error = s.stdio.Error
	}
	if s.stdio.Input != "" {
		io.Input = s.stdio.Input
	}
	if io.Append = io.Append || s.stdio.Append; io != (job.Stdio{}) {
		s.spec.Gbatch.Stdio = &io
	}
	s.place()
}
