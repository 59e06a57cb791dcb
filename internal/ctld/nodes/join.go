package nodes

import (
	"context"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/control"
	"gbatch/internal/ctld/access"
	"gbatch/internal/ctld/loop"
	"gbatch/internal/ctld/site"
	"gbatch/internal/pki"
)

// Keys gives machines the keys by which they are nodes, and takes them away.
type Keys struct {
	Keys *access.Keyring
	Pki  *pki.Authority
	Loop *loop.Loop
	Now  func() time.Time
}

type joinInput struct {
	Name string `path:"name"`
	Body api.JoinRequest
}

// Join makes a machine a node: it shows a join token and its own key, and gets
// a certificate for it. To ask again with the same key is fine.
func (s *Keys) Join(ctx context.Context, in *joinInput) (*api.JoinResponse, error) {
	id := access.Caller(ctx)
	if !site.NodeNameRule.MatchString(in.Name) {
		return nil, api.Errorf(api.CodeBadRequest, "%q is no node name", in.Name)
	}
	if id.Node != "" && id.Node != in.Name {
		return nil, api.Errorf(api.CodeDenied, "this token is for node %s, not for %s", id.Node, in.Name).WithHint("see name in the node's gnoded.yaml")
	}
	certificate, key, err := s.Pki.SignNode(in.Name, []byte(in.Body.Request))
	if err != nil {
		return nil, api.Errorf(api.CodeBadRequest, "%v", err)
	}
	s.Keys.Change.Lock()
	defer s.Keys.Change.Unlock()
	out := &api.JoinResponse{Certificate: string(certificate)}
	old := s.Keys.Node(in.Name)
	if old != nil && old.Key != key {
		return nil, api.Errorf(api.CodeConflict, "there is a node %s already, with another key", in.Name).
			WithHint("if this machine replaces it, an operator drops the old one by `gadm forget " + in.Name + "`; else give this one another name")
	}
	if old != nil && old.Token == id.Token {
		return out, nil // the first answer was lost
	}
	if n := s.Loop.View().Node(in.Name); old == nil && n != nil && !n.Lost {
		return nil, api.Errorf(api.CodeConflict, "there is a node %s already, in contact by the controller's own socket or until lately", in.Name).
			WithHint("give this one another name, or wait until ginfo shows the other as lost")
	}
	t, ok := s.Keys.Token(id.Token)
	if !ok || t.Left < 1 || !t.Revoked.IsZero() {
		return nil, api.Errorf(api.CodeUnauthorized, "the token %s has been used up", id.Token).WithHint("get a new one: gadm node-token create")
	}
	t.Left--
	n := &access.NodeKey{Key: key, Joined: s.Now().UTC(), Token: t.ID}
	if err := s.Loop.Commit(ctx, "node "+in.Name, "joined with key "+key, access.TokenRecord(t), access.NodeKeyRecord(in.Name, n)); err != nil {
		return nil, err
	}
	s.Keys.PutToken(t)
	s.Keys.PutNode(in.Name, n)
	return out, nil
}

// Renew gives a node its next certificate, for the key that it has.
func (s *Keys) Renew(ctx context.Context, in *joinInput) (*api.JoinResponse, error) {
	if id := access.Caller(ctx); id.Role != access.RoleNode || id.Node != in.Name {
		return nil, api.Errorf(api.CodeDenied, "only the node itself renews its certificate")
	}
	certificate, key, err := s.Pki.SignNode(in.Name, []byte(in.Body.Request))
	if err != nil {
		return nil, api.Errorf(api.CodeBadRequest, "%v", err)
	}
	if n := s.Keys.Node(in.Name); n == nil || n.Key != key {
		return nil, api.Errorf(api.CodeConflict, "a node keeps its key").WithHint("to change it, have the node forgotten and join again")
	}
	return &api.JoinResponse{Certificate: string(certificate)}, nil
}

// Revoke takes a node's key away: what it has open ends, it falls silent,
// and what runs there is lost in time.
func (s *Keys) Revoke(ctx context.Context, in *nodeName) error {
	s.Keys.Change.Lock()
	defer s.Keys.Change.Unlock()
	if s.Keys.Node(in.Name) == nil {
		return api.Errorf(api.CodeNotFound, "no node %q has joined with a key", in.Name)
	}
	if err := s.Loop.Commit(ctx, "node "+in.Name, "key revoked", access.NodeKeyRecord(in.Name, nil)); err != nil {
		return err
	}
	s.Keys.PutNode(in.Name, nil)
	return nil
}

// Forget drops a node that is gone for good, and its key with it.
func (s *Keys) Forget(ctx context.Context, in *forgetInput) error {
	s.Keys.Change.Lock()
	defer s.Keys.Change.Unlock()
	if s.Loop.View().Node(in.Name) == nil && s.Keys.Node(in.Name) != nil { // it has joined and never spoken
		if err := s.Loop.Commit(ctx, "node "+in.Name, "forgotten", access.NodeKeyRecord(in.Name, nil)); err != nil {
			return err
		}
	} else if err := loop.DoToEnd(ctx, s.Loop, control.Forget{Node: in.Name, By: access.Caller(ctx).User, GiveUpJobs: in.GiveUpJobs}, access.NodeKeyRecord(in.Name, nil)); err != nil {
		return err
	}
	s.Keys.PutNode(in.Name, nil)
	return nil
}
