package jobs

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gbatch/internal/api"
	"gbatch/internal/control"
	"gbatch/internal/ctld/access"
	"gbatch/internal/ctld/jobstore"
	"gbatch/internal/ctld/loop"
	"gbatch/internal/job"
	"gbatch/internal/state"
)

// SecretsInput asks for new values of the secrets of one job.
type SecretsInput struct {
	ID   string `path:"id"`
	Body api.SecretsRequest
}

// SetSecrets gives a job that waits or runs new values of its secrets.
func (s *Actions) SetSecrets(ctx context.Context, in *SecretsInput) (*api.SecretsResponse, error) {
	id := access.Caller(ctx)
	j, err := s.Jobs.Find(in.ID)
	if err != nil {
		return nil, err
	}
	if id.Role == access.RoleNode || id.User != j.Owner.User {
		return nil, api.Errorf(api.CodeDenied, "job %s belongs to %s: only its owner sets its secrets", in.ID, j.Owner.User)
	}
	if j.Number == 0 {
		return nil, notByItself(in.ID)
	}
	if err := checkNewSecrets(in.Body.Values); err != nil {
		return nil, err
	}
	for range 10 {
		out, err := s.trySecrets(ctx, id, j, in.Body.Values)
		if out != nil || err != nil {
			return out, err
		}
		if j, err = s.Jobs.Find(in.ID); err != nil {
			return nil, err
		}
	}
	return nil, api.Errorf(api.CodeConflict, "the secrets of job %d are being changed by others", j.Number).WithHint("try again")
}

// trySecrets merges the values with those of the job's present version; nil
// means that these are no longer the present ones.
func (s *Actions) trySecrets(ctx context.Context, id access.Identity, j *state.Job, values map[string]string) (*api.SecretsResponse, error) {
	var kept jobstore.Sealed
	if j.Sealed {
		var err error
		if kept, err = s.Jobs.Unseal(j.Document()); err != nil {
			// Deleted a moment ago with the job's end, or the store's fault.
			if now, ferr := s.Jobs.Find(fmt.Sprint(j.Number)); ferr == nil && now.Version != j.Version {
				return nil, nil
			}
			return nil, err
		}
	}
	merged := map[string]string{}
	maps.Copy(merged, kept.Secrets)
	maps.Copy(merged, values)
	total := 0
	for _, v := range merged {
		total += len(v)
	}
	if len(merged) > job.MaxSecrets || total > job.MaxSecretsBytes {
		return nil, api.Errorf(api.CodeBadRequest, "%d secrets of %d bytes together are more than a job may have: %d of %d bytes", len(merged), total, job.MaxSecrets, job.MaxSecretsBytes)
	}
	kept.Secrets = merged
	text, err := s.Jobs.Vault.Seal(kept)
	if err != nil {
		return nil, err
	}
	done, err := loop.Do(ctx, s.Loop, control.SetSecrets{Number: j.Number, Base: j.Secrets, Sealed: text, Names: slices.Collect(maps.Keys(values)), By: id.User})
	if err != nil {
		return nil, err
	}
	if !done.Done {
		return nil, nil
	}
	out := api.SecretsResponse{Number: j.Number, Version: done.Version, State: done.State, Message: "the job starts with them"}
	if done.State.Active() { // of an array: tasks run
		out.Message = "the files in " + job.SecretsDir + " are being replaced; processes that run keep the variables that they were started with"
	}
	return &out, nil
}

// checkNewSecrets names what is wrong and never quotes a value.
func checkNewSecrets(values map[string]string) error {
	var errs []error
	if len(values) == 0 {
		errs = append(errs, errors.New("no secret was given"))
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if wrong := job.SecretName(name); wrong != "" {
			errs = append(errs, fmt.Errorf("the name %s", wrong))
		} else if wrong := job.SecretValue(values[name]); wrong != "" {
			errs = append(errs, fmt.Errorf("secret %s: its value %s", name, wrong))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return api.Errorf(api.CodeBadRequest, "%v", err)
	}
	return nil
}

// notByItself is of a task that the array has not made a job of.
func notByItself(id string) error {
	array, _, _ := strings.Cut(id, "_")
	return api.Errorf(api.CodeConflict, "task %s has not begun, and is no job by itself", id).WithHint("name its array, " + array)
}
