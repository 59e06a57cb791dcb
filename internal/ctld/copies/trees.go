package copies

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/ctld/trees"
	"gbatch/internal/tree"
)

// treesPath is what users of uploaded directories stand behind, in hex, as their names may
// have anything.
const treesPath = "/trees/"

func treePath(user, id string) string { return treesPath + hex.EncodeToString([]byte(user)) + "/" + id }

func chunkPath(user, sum string) string {
	return treesPath + hex.EncodeToString([]byte(user)) + "/chunks/" + sum
}

// serveTrees has the routes of uploaded directories.
func (s *Server) serveTrees(mux *http.ServeMux) {
	mux.HandleFunc("GET "+treesPath+"{$}", s.ofTrees(func(r *http.Request, t *trees.Store, _ string) (any, error) {
		all, err := t.Trees(r.Context())
		list := map[string]map[string]time.Time{}
		for user, trees := range all {
			list[hex.EncodeToString([]byte(user))] = trees
		}
		return list, err
	}))
	mux.HandleFunc("GET "+treesPath+"{user}/{id}", s.ofTrees(func(r *http.Request, t *trees.Store, user string) (any, error) {
		c, err := t.Tree(r.Context(), user, r.PathValue("id"))
		if c == nil {
			return nil, err
		}
		return c, err
	}))
	mux.HandleFunc("PUT "+treesPath+"{user}/{id}", s.ofTrees(func(r *http.Request, t *trees.Store, user string) (any, error) {
		var c trees.Copy
		if err := json.NewDecoder(io.LimitReader(r.Body, maxList)).Decode(&c); err != nil {
			return nil, err
		}
		return t.Take(r.Context(), user, c)
	}))
	mux.HandleFunc("DELETE "+treesPath+"{user}/{id}", s.ofTrees(func(r *http.Request, t *trees.Store, user string) (any, error) {
		return true, t.Drop(r.Context(), user, r.PathValue("id"))
	}))
	mux.HandleFunc("GET "+treesPath+"{user}/chunks/{sum}", s.ofTrees(func(r *http.Request, t *trees.Store, user string) (any, error) {
		data, err := t.Chunk(r.Context(), user, r.PathValue("sum"))
		if data == nil {
			return nil, err
		}
		return data, err
	}))
	mux.HandleFunc("PUT "+treesPath+"{user}/chunks/{sum}", s.ofTrees(func(r *http.Request, t *trees.Store, user string) (any, error) {
		data, err := io.ReadAll(io.LimitReader(r.Body, tree.MaxChunk+1))
		if err == nil {
			err = t.TakeChunk(r.Context(), user, r.PathValue("sum"), data)
		}
		return true, err
	}))
}

// ofTrees answers with what do gives: bytes as they are, else as JSON; nil: it is not here.
func (s *Server) ofTrees(do func(r *http.Request, t *trees.Store, user string) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		h := s.held.Load()
		if h == nil {
			leads(w)
			return
		}
		user, err := hex.DecodeString(r.PathValue("user"))
		var answer any
		if err == nil {
			answer, err = do(r, h.trees, string(user))
		}
		if err != nil {
			s.treeError(r.Context(), w, err)
			return
		}
		switch v := answer.(type) {
		case nil:
			http.Error(w, "it is not here", http.StatusNotFound)
		case []byte:
			_, _ = w.Write(v)
		default:
			_ = json.NewEncoder(w).Encode(v)
		}
	}
}

// treeError says why something of a directory was not done.
func (s *Server) treeError(ctx context.Context, w http.ResponseWriter, err error) {
	code := http.StatusInternalServerError
	var e *api.Error
	if errors.As(err, &e) {
		code = e.GetStatus()
	}
	if code == http.StatusInternalServerError && ctx.Err() == nil {
		s.log.Error("what another controller asked of an uploaded directory was not done; it asks again", "error", err)
	}
	http.Error(w, err.Error(), code)
}
