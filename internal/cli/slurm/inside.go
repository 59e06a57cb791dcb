package slurm

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"gbatch/internal/cli"
	"gbatch/internal/cli/allocation"
	"gbatch/internal/client"
	"gbatch/internal/job"
	"gbatch/internal/job/importer/slurm"
)

// ownJob is the document of the job in whose container sbatch is called; nil: in none. The
// image is that of scripts which name none.
func ownJob(ctx context.Context, a *cli.App) (own *job.Spec, image string, err error) {
	image, _ = a.Env(allocation.ImageVariable)
	if a.Within == "" {
		return nil, image, nil
	}
	d, err := a.Client.Job(ctx, a.Within, client.JobOptions{})
	if err != nil {
		return nil, "", fmt.Errorf("look at this job: %w", err)
	}
	if d.Spec != nil && image == "" {
		image = d.Spec.Request.Docker.Image
	}
	return d.Spec, image, nil
}

// takeAfter gives a script what the job has that submits it; own is nil where none does.
func takeAfter(a *cli.App, own *job.Spec, sub *job.Submission) error {
	if own == nil {
		return nil
	}
	mountAs(own, &sub.Spec)
	if !slurm.ExportsAll(&sub.Spec) {
		return nil
	}
	began, err := beganWith()
	if err == nil {
		passOn(a.Environ(), began, own, sub)
	}
	return err
}

// mountAs gives a script what the job mounts that submits it, where it mounts nothing
// of its own there: so paths mean the same in both.
func mountAs(own, spec *job.Spec) {
	docker := &spec.Request.Docker
	for _, m := range own.Request.Docker.Storage {
		if m.HostPath == job.TmpfsHostPath || slices.ContainsFunc(docker.Storage, func(s job.Storage) bool { return s.ContainerPath == m.ContainerPath }) {
			continue
		}
		docker.Storage = append(docker.Storage, m)
	}
}

// beganWith are the variables that this container's script began with.
func beganWith() ([]string, error) {
	b, err := os.ReadFile("/proc/1/environ")
	if err != nil {
		return nil, fmt.Errorf("look which variables the script has set: %w; with --export=NONE none goes along", err)
	}
	return strings.Split(strings.TrimSuffix(string(b), "\x00"), "\x00"), nil
}

// passOn has the variables go along that the calling script has set since it began, as
// sbatch does with all of its shell, and those that it was given. What the script has
// set may be secret, and the document is seen by others of the project: so the values
// are sealed, but for PATH, which finds the program, and those that the calling job's
// own document shows.
func passOn(now, began []string, own *job.Spec, sub *job.Submission) {
	first, shown := variables(began), own.Request.Docker.Environment
	docker, plain, secrets, total := &sub.Spec.Request.Docker, map[string]string{}, map[string]string{}, 0
	var left []string
	all := variables(now)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		value := all[name]
		was, had := first[name]
		document, isShown := shown[name]
		kept := own.Gbatch != nil && slices.ContainsFunc(own.Gbatch.Secrets, func(s job.Secret) bool { return s.Name == name })
		_, given := docker.Environment[name]
		switch {
		case given || ofThisShell(name) || had && was == value && !kept && !isShown:
		case name == "PATH" && docker.Image != own.Request.Docker.Image:
		case name == "PATH" || value == "" || isShown && document == value:
			plain[name] = value
		case job.SecretName(name) != "" || job.SecretValue(value) != "" || len(secrets) == job.MaxSecrets || total+len(value) > job.MaxSecretsBytes:
			left = append(left, name)
		default:
			secrets[name] = value
			total += len(value)
		}
	}
	maps.Copy(plain, docker.Environment)
	if len(plain) > 0 {
		docker.Environment = plain
	}
	sub.SetSecrets(secrets)
	if len(left) > 0 {
		sub.Notes = append(sub.Notes, job.Note{Path: "--export", Message: strings.Join(left, ", ") + " of this shell does not go along: its name or its length is not one of a secret, or there are too many"})
	}
}

// variables are NAME=value pairs by name.
func variables(pairs []string) map[string]string {
	all := map[string]string{}
	for _, kv := range pairs {
		name, value, _ := strings.Cut(kv, "=")
		all[name] = value
	}
	return all
}

// ofThisShell are variables that a job has of its own, or that are about the shell.
func ofThisShell(name string) bool {
	if slices.Contains([]string{"", "_", "PWD", "OLDPWD", "SHLVL", "HOSTNAME", "ENVIRONMENT", "CUDA_VISIBLE_DEVICES"}, name) {
		return true
	}
	return slices.ContainsFunc([]string{"SLURM_", "SLURMD_", "GBATCH_", "PMI_", "PMIX_", "NVIDIA_"}, func(of string) bool { return strings.HasPrefix(name, of) })
}
