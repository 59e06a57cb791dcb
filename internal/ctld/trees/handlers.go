package trees

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/ctld/access"
	"gbatch/internal/ctld/jobstore"
	"gbatch/internal/job"
	"gbatch/internal/tree"
)

// Handlers serve users, who send trees and never get them back, and nodes, which
// read those of the jobs that they run.
type Handlers struct {
	*Store
	Jobs *jobstore.Reader
}

// addInput asks to keep a tree.
type addInput struct{ Body api.TreeRequest }

// AddTree keeps a tree of the caller's, or says which chunks it lacks.
func (h *Handlers) AddTree(ctx context.Context, in *addInput) (*api.TreeResponse, error) {
	user := access.Caller(ctx).User
	id, missing, err := h.add(user, tree.Manifest{Chunks: in.Body.Chunks})
	if err == nil && len(missing) == 0 {
		err = h.spread(ctx, user, id)
	}
	return &api.TreeResponse{Tree: id, Missing: missing}, err
}

// chunkInput is a chunk.
type chunkInput struct {
	Sum     string `path:"sum" doc:"SHA-256 of the bytes, in hex"`
	RawBody []byte
}

// PutChunk keeps a chunk of the caller's.
func (h *Handlers) PutChunk(ctx context.Context, in *chunkInput) error {
	user := access.Caller(ctx).User
	if err := h.put(user, in.Sum, in.RawBody); err != nil {
		return err
	}
	h.spreadChunk(ctx, user, in.Sum, in.RawBody)
	return nil
}

// Serve gives a node the archive of a tree that a job of its takes along.
func (h *Handlers) Serve(w http.ResponseWriter, r *http.Request) error {
	name, id := r.PathValue("name"), r.PathValue("tree")
	if who := access.Caller(r.Context()); !who.MayNode(name) {
		return api.Errorf(api.CodeDenied, "%s speaks for itself, not for node %s", who.User, name)
	}
	j, err := h.Jobs.Find(r.PathValue("id"))
	if err != nil {
		return err
	}
	here := false
	if j != nil && j.Attempt != nil && j.State.Active() {
		for _, k := range j.Attempt.Ranks {
			here = here || k.Alloc.Node == name
		}
	}
	if !here {
		return api.Errorf(api.CodeDenied, "job %s has no rank on node %s", r.PathValue("id"), name)
	}
	spec, err := h.Jobs.Document(j)
	if err != nil {
		return err
	}
	archive, err := h.open(j.Owner.User, id)
	if errors.Is(err, fs.ErrNotExist) && spec.Trees()[id] {
		var got bool
		if got, err = h.fetch(r.Context(), j.Owner.User, id); err != nil {
			return err
		}
		if got {
			archive, err = h.open(j.Owner.User, id)
		} else {
			err = fs.ErrNotExist
		}
	}
	if errors.Is(err, fs.ErrNotExist) || !spec.Trees()[id] {
		return api.Errorf(api.CodeNotFound, "the directory %s is not on the controller: it was removed, or the controller's state was restored from a backup", id).
			WithHint("submit the job again with the directory")
	}
	if err != nil {
		return err
	}
	w.Header().Set("ETag", `"`+id+`"`)
	w.Header().Set("Content-Type", "application/x-tar")
	http.ServeContent(w, r, "", time.Time{}, archive)
	return nil
}

// NeededOf says which trees a user's jobs need that are not over.
func NeededOf(jobs *jobstore.Reader) func(user string) (map[string]bool, error) {
	return func(user string) (map[string]bool, error) {
		needed, seen := map[string]bool{}, map[job.Number]bool{}
		for j := range jobs.View().Live() {
			doc := j.Document()
			if j.Owner.User != user || seen[doc] {
				continue
			}
			seen[doc] = true
			spec, err := jobs.Document(j)
			if err != nil {
				return nil, err
			}
			for id := range spec.Trees() {
				needed[id] = true
			}
		}
		return needed, nil
	}
}
