package slurm

import (
	"context"
	"fmt"
	"slices"

	"gbatch/internal/cli"
	"gbatch/internal/cli/allocation"
	"gbatch/internal/client"
	"gbatch/internal/job"
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

// mountAs gives a script what the job mounts that submits it, where it mounts nothing
// of its own there: so paths mean the same in both.
func mountAs(own, spec *job.Spec) {
	if own == nil {
		return
	}
	docker := &spec.Request.Docker
	for _, m := range own.Request.Docker.Storage {
		if m.HostPath == job.TmpfsHostPath || slices.ContainsFunc(docker.Storage, func(s job.Storage) bool { return s.ContainerPath == m.ContainerPath }) {
			continue
		}
		docker.Storage = append(docker.Storage, m)
	}
}
