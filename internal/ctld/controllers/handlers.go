package controllers

import (
	"context"
	"net"
	"slices"

	"gbatch/internal/api"
	"gbatch/internal/ctld/access"
	"gbatch/internal/ctld/backup"
	"gbatch/internal/ctld/loop"
	"gbatch/internal/ctld/site"
	"gbatch/internal/replica"
)

// Handlers serve those who run several controllers.
type Handlers struct {
	Members *Members // nil: this one is alone
	Dir     string   // of this controller
	Loop    *loop.Loop
}

// alone is of a controller that cannot have others beside it.
func alone() error {
	return api.Errorf(api.CodeConflict, "this controller is the only one").
		WithHint("to have others beside it, give it a name among them by `replica` in gctld.yaml and restart it: docs/controllers.md")
}

type listInput struct{}

// List lists the controllers.
func (h *Handlers) List(context.Context, *listInput) (*api.ControllerList, error) {
	if h.Members == nil {
		return &api.ControllerList{Controllers: []api.Controller{{Name: "", Leads: true, Counts: true, Answers: true, Alone: true}}}, nil
	}
	list, err := h.Members.list()
	if err == nil {
		err = h.settle()
	}
	if err != nil {
		return nil, err
	}
	return &api.ControllerList{Controllers: list}, nil
}

// settle is nil where the controllers that were just listed are agreed on. A change that is not may come to nothing: whoever
// took it for done would empty a machine that still counts, or rely on one that does not count yet.
func (h *Handlers) settle() error {
	if err := h.Members.Settle(); err != nil {
		return api.Errorf(api.CodeUnavailable, "a majority of the controllers does not agree at the moment on who they are: %v", err).WithHint("try again; a majority must run and reach each other")
	}
	return nil
}

// settled are the controllers that are agreed on.
func (h *Handlers) settled() ([]replica.Member, error) {
	all, err := h.Members.Replicas.Members()
	if err == nil {
		err = h.settle()
	}
	return all, err
}

type addInput struct{ Body api.NewController }

// Add lets another controller take part, and gives root of this machine what that one needs.
func (h *Handlers) Add(ctx context.Context, in *addInput) (*api.JoinFile, error) {
	if id := access.Caller(ctx); !id.Root {
		return nil, api.Errorf(api.CodeDenied, "what another controller needs to join are all keys: only root on this machine gets it").WithHint("run `gadm controllers add` there")
	}
	if h.Members == nil {
		return nil, alone()
	}
	if !site.NameRule.MatchString(in.Body.Name) {
		return nil, api.Errorf(api.CodeBadRequest, "%q is no name of a controller", in.Body.Name).WithHint("letters, digits, '.', '_' and '-'")
	}
	if _, _, err := net.SplitHostPort(in.Body.Address); err != nil {
		return nil, api.Errorf(api.CodeBadRequest, "%q: want HOST:PORT by which the other controllers reach it, as c2.example.org:7078", in.Body.Address)
	}
	all, err := h.settled()
	if err != nil {
		return nil, err
	}
	same := func(m replica.Member) bool { return m.Name == in.Body.Name }
	if i := slices.IndexFunc(all, same); i >= 0 && (all[i].Address != in.Body.Address || all[i].Voter) {
		return nil, api.Errorf(api.CodeConflict, "there is a controller %s already, at %s", in.Body.Name, all[i].Address).
			WithHint("give this one another name; if it takes the other's place, remove that first: gadm controllers remove " + in.Body.Name)
	}
	if i := slices.IndexFunc(all, func(m replica.Member) bool { return m.Address == in.Body.Address && !same(m) }); i >= 0 {
		return nil, api.Errorf(api.CodeConflict, "controller %s has the address %s already", all[i].Name, in.Body.Address)
	}
	keys, err := backup.Keys(h.Dir)
	if err != nil {
		return nil, err
	}
	if err := h.Loop.Commit(ctx, "controller "+in.Body.Name, "may join at "+in.Body.Address+"; all keys were given out"); err != nil {
		return nil, err
	}
	entry, err := h.Members.Add(in.Body.Name, in.Body.Address)
	if err != nil {
		return nil, err
	}
	return &api.JoinFile{NewController: in.Body, Keys: keys, Entry: entry, PatienceS: h.Members.patience}, nil
}

type nameInput struct {
	Name string `path:"name"`
}

// Remove lets a controller take part no longer.
func (h *Handlers) Remove(ctx context.Context, in *nameInput) error {
	if err := h.known(in.Name); err != nil {
		return err
	}
	if in.Name == h.Members.self {
		return api.Errorf(api.CodeConflict, "controller %s leads", in.Name).WithHint("let another one lead first: gadm controllers transfer")
	}
	if err := h.Loop.Commit(ctx, "controller "+in.Name, "removed"); err != nil {
		return err
	}
	return h.Members.Remove(in.Name)
}

// anyName has the least that is behind lead.
const anyName = "any"

// Transfer lets another controller lead.
func (h *Handlers) Transfer(ctx context.Context, in *nameInput) error {
	to := in.Name
	if to == anyName {
		to = ""
	}
	if h.Members == nil {
		return alone()
	}
	if to != "" {
		if err := h.known(to); err != nil {
			return err
		}
	}
	if to == h.Members.self {
		return nil
	}
	if err := h.Loop.Commit(ctx, "controller "+in.Name, "is to lead"); err != nil {
		return err
	}
	if err := h.Members.Transfer(to); err != nil {
		return api.Errorf(api.CodeUnavailable, "the lead was not transferred: %v", err).WithHint("see gadm controllers: another one must answer and count")
	}
	return nil
}

func (h *Handlers) known(name string) error {
	if h.Members == nil {
		return alone()
	}
	all, err := h.settled()
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(all, func(m replica.Member) bool { return m.Name == name }) {
		return api.Errorf(api.CodeNotFound, "no controller has the name %q", name).WithHint("see gadm controllers")
	}
	return nil
}
