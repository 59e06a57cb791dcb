package slurm

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"gbatch/internal/job/importer/foreign"
)

// variable is one that a script has because an option was given. srun in the
// script takes some of them for options of its own.
func (s *script) variable(name, value string) {
	foreign.Set(&s.variables, name, value)
}

// tell gives the script the variables that stand for its options, unless it
// names them itself.
func (s *script) tell() {
	if s.memPerCPU > 0 {
		s.variable("SLURM_MEM_PER_CPU", strconv.FormatInt(s.memPerCPU, 10))
	}
	if s.memPerGPU >= 0 {
		s.variable("SLURM_MEM_PER_GPU", strconv.FormatInt(s.memPerGPU, 10))
	}
	docker := &s.spec.Request.Docker
	for name, value := range s.variables {
		if _, own := docker.Environment[name]; !own {
			foreign.Set(&docker.Environment, name, value)
		}
	}
}

// distribution says how srun in the script lays tasks out.
func (s *script) distribution(v string) error {
	v = strings.ToLower(v)
	if size, ok := strings.CutPrefix(v, "plane="); ok {
		if n, err := wholeNumber(size); err != nil || n < 1 {
			return errors.New("want plane=NUMBER")
		}
		s.variable("SLURM_DISTRIBUTION", "plane")
		s.variable("SLURM_DIST_PLANESIZE", size)
		return nil
	}
	s.pack = v == "pack" || strings.HasSuffix(v, ",pack")
	if v == "pack" || v == "nopack" {
		v = "block," + v
	}
	if v == "*" || strings.HasPrefix(v, "*:") || strings.HasPrefix(v, "*,") {
		v = "block" + v[1:]
	}
	switch word, _, _ := strings.Cut(strings.ReplaceAll(v, ",", ":"), ":"); word {
	case "block", "cyclic":
		s.variable("SLURM_DISTRIBUTION", v)
		return nil
	case "arbitrary":
		return errors.New("names hosts in a file, which is not read: srun in the script has --nodelist")
	}
	return errors.New("want block, cyclic or plane=NUMBER")
}

// hints are about threads of cores. Slurm's own variables for them are set.
func (s *script) hints(v string) error {
	switch v {
	case "compute_bound", "memory_bound", "nomultithread":
		s.variable("SLURM_THREADS_PER_CORE", "1")
	case "multithread":
		s.variable("SLURM_NTASKS_PER_CORE", "65535")
	default:
		return errors.New("want compute_bound, memory_bound, multithread or nomultithread")
	}
	s.variable("SLURM_HINT", v)
	return nil
}

func (s *script) memBind(v string) error {
	words, loud := strings.Split(v, ","), "quiet"
	if slices.Contains(words, "verbose") || slices.Contains(words, "v") {
		loud = "verbose"
	}
	s.variable("SLURM_MEM_BIND", v)
	s.variable("SLURM_MEM_BIND_VERBOSE", loud)
	return nil
}

func (s *script) profile(v string) error {
	if v = strings.ToLower(v); v == "all" {
		v = "energy,lustre,network,task"
	}
	words := strings.Split(v, ",")
	for i, w := range words {
		if !slices.Contains([]string{"energy", "lustre", "network", "task", "none"}, w) {
			return errors.New("want all, none, energy, lustre, network or task")
		}
		words[i] = string(unicode.ToUpper(rune(w[0]))) + w[1:]
	}
	s.variable("SLURM_PROFILE", strings.Join(words, ","))
	return nil
}

func userEnv(s *script, _ string) error {
	s.variable("SLURM_GET_USER_ENV", "1")
	return nil
}
