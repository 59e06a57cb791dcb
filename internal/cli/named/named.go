// Package named finds the jobs that people mean by a name.
package named

import (
	"context"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/cli/exit"
	"gbatch/internal/cli/jobs"
	"gbatch/internal/client"
	"gbatch/internal/job"
)

// Jobs are those of a name: all that wait or run, or, if there are none, those that
// ended. There is one at least.
func Jobs(ctx context.Context, a *cli.App, name string) ([]api.Job, error) {
	for _, all := range []bool{false, true} {
		found, err := a.Client.Jobs(ctx, client.JobFilter{Name: name, All: all})
		if err != nil || len(found.Jobs) > 0 {
			return found.Jobs, err
		}
	}
	return nil, api.Errorf(api.CodeNotFound, "there is no job %q", name).
		WithHint("use a number as gqueue shows it, a UUID or its first six or more digits, or a job's name")
}

// Job is the one job that a word names, by number, UUID or name.
func Job(ctx context.Context, a *cli.App, word string) (*api.JobDetail, error) {
	d, err := a.Client.Job(ctx, word, client.JobOptions{})
	if _, isNumber := job.ParseNumber(word); isNumber || !client.IsCode(err, api.CodeNotFound) {
		return d, err
	}
	found, err := Jobs(ctx, a, word)
	if err != nil {
		return nil, err
	}
	if len(found) > 1 {
		return nil, exit.Usagef("%d jobs are called %q, as %s and %s: use a number; gqueue %[2]s lists them", len(found), word, jobs.ID(&found[0]), jobs.ID(&found[1]))
	}
	return a.Client.Job(ctx, jobs.ID(&found[0]), client.JobOptions{})
}

// ID is what the controller calls the one job that a word names. It is asked only if
// the word is no number.
func ID(ctx context.Context, a *cli.App, word string) (string, error) {
	if _, isNumber := job.ParseNumber(word); isNumber {
		return word, nil
	}
	d, err := Job(ctx, a, word)
	if err != nil {
		return "", err
	}
	return jobs.ID(&d.Job), nil
}
