package site

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"gbatch/internal/api"
	"gbatch/internal/job"
)

// batchImage is the name in imageAliases of the image that batch scripts run in
// which name none.
const batchImage = "slurm"

// Batch is what batch scripts get that do not say it themselves: jobs with
// gbatch.launch. In its texts {user} and {project} stand for the job's.
type Batch struct {
	Mounts      []BatchMount      `yaml:"mounts"`      // storage that they mount beside their own
	Network     job.Network       `yaml:"network"`     // host: that of their nodes, in projects that may use it; else their own
	Environment map[string]string `yaml:"environment"` // variables that they have unless they set them
	Commands    bool              `yaml:"commands"`    // they may call sbatch, scancel and the like, as their users
}

// BatchMount is storage of the nodes at a place in the container.
type BatchMount struct {
	HostPath      string `yaml:"hostPath"`      // as a job names it
	ContainerPath string `yaml:"containerPath"` // empty: the same
	ReadOnly      bool   `yaml:"readOnly"`
}

// maxBatchMounts leaves most of a job's mounts to its own.
const maxBatchMounts = 32

func (b Batch) check(bad func(path, format string, a ...any)) {
	if len(b.Mounts) > maxBatchMounts {
		bad("batch.mounts", "has %d entries, at most %d are allowed", len(b.Mounts), maxBatchMounts)
	}
	if !slices.Contains([]job.Network{"", job.NetworkBridge, job.NetworkHost}, b.Network) {
		bad("batch.network", "%q: want %s or %s", b.Network, job.NetworkBridge, job.NetworkHost)
	}
	for i, m := range b.Mounts {
		at := fmt.Sprintf("batch.mounts[%d]", i)
		for _, p := range []string{m.HostPath, m.target()} {
			if !path.IsAbs(p) || path.Clean(p) != p || p == "/" {
				bad(at, "%q: want an absolute path below /", p)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(b.Environment)) {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			bad("batch.environment", "%q is no name of a variable", name)
		}
	}
}

func (m BatchMount) target() string {
	if m.ContainerPath == "" {
		return m.HostPath
	}
	return m.ContainerPath
}

// ResolveBatch gives a batch script what the site has for all of them, and the
// directory that it was submitted from where its storage reaches that far. It
// tells what the script cannot have.
func (c Config) ResolveBatch(spec *job.Spec, user, project string) ([]job.Note, error) {
	if !spec.Launches() {
		return nil, nil
	}
	c.Batch.apply(spec, strings.NewReplacer("{user}", user, "{project}", project))
	if p, _ := c.Project(project); p.HostNetwork && spec.Gbatch.Network == "" && len(spec.Request.Docker.PortMappings) == 0 {
		spec.Gbatch.Network = c.Batch.Network
	}
	docker, dir := &spec.Request.Docker, spec.Gbatch.Launch.Directory
	var notes []job.Note
	output, errors, input := job.StdioFiles(job.EnvInput{Spec: spec, User: user, Node: "node"})
	const alone = "its output is read with glog"
	switch reached := spec.Reaches(dir); {
	case dir == "" || docker.WorkingDir != "":
	case reached:
		docker.WorkingDir = dir
		output, errors, input = job.StdioFiles(job.EnvInput{Spec: spec, User: user, Node: "node"})
	default:
		notes = append(notes, job.Note{Path: "gbatch.launch.directory",
			Message: fmt.Sprintf("%s lies on no storage that the job mounts: the script begins in the image's own directory, and %s", dir, alone)})
	}
	for _, f := range []struct {
		name string
		job.StdioFile
	}{{"output", output}, {"error", errors}} {
		if f.Path != "" && !writable(f.StdioFile) && len(notes) == 0 {
			notes = append(notes, job.Note{Path: "gbatch.stdio." + f.name, Message: fmt.Sprintf("%s lies on no storage that the job can write to: %s", f.Path, alone)})
		}
	}
	if input.Path != "" && !input.Reached() {
		return nil, &api.Error{Status: 422, Code: api.CodeInvalidJob, Message: "the job cannot be taken here", Problems: []api.Problem{{Path: "gbatch.stdio.input",
			Message: fmt.Sprintf("%s lies on no storage that the job mounts", input.Path), Hint: "mount it, or let the script read it itself: command < FILE"}}}
	}
	return notes, nil
}

func writable(f job.StdioFile) bool { return f.Reached() && !f.Mount.ReadOnly }

// named turns a path as scripts see it, below what the site mounts for them, into the
// storage that it is of. What is below storage of another name than its place there is so
// also for what a script mounts by --container-mounts.
func (b Batch) named(at string, fill *strings.Replacer) (host string, readOnly bool) {
	longest := ""
	host = at
	for _, m := range b.Mounts {
		of, target := fill.Replace(m.HostPath), fill.Replace(m.target())
		rest, below := strings.CutPrefix(at+"/", target+"/")
		if !below || len(target) <= len(longest) || strings.HasPrefix(of+"/", target+"/") {
			continue // the last: it would be found again where the document is submitted once more
		}
		longest, host, readOnly = target, path.Join(of, rest), m.ReadOnly
	}
	return host, readOnly
}

func (b Batch) apply(spec *job.Spec, fill *strings.Replacer) {
	docker := &spec.Request.Docker
	docker.Storage = slices.Clone(docker.Storage)
	for i := range docker.Storage {
		s := &docker.Storage[i]
		host, readOnly := b.named(s.HostPath, fill)
		s.HostPath, s.ReadOnly = host, s.ReadOnly || readOnly
	}
	for _, m := range b.Mounts {
		entry := job.Storage{HostPath: fill.Replace(m.HostPath), ContainerPath: fill.Replace(m.target()), ReadOnly: m.ReadOnly}
		if !slices.ContainsFunc(docker.Storage, func(s job.Storage) bool { return s.ContainerPath == entry.ContainerPath }) {
			docker.Storage = append(slices.Clip(docker.Storage), entry)
		}
	}
	env := map[string]string{}
	for name, value := range b.Environment {
		env[name] = fill.Replace(value)
	}
	maps.Copy(env, docker.Environment)
	if len(env) > 0 {
		docker.Environment = env
	}
}
