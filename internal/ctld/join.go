package ctld

import (
	"context"
	"fmt"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/control"
	"gbatch/internal/ctld/site"
	"gbatch/internal/pki"
)

// Keys gives machines the keys by which they are nodes, and takes them away.
type Keys struct {
	keys *Keyring
	pki  *pki.Authority
	loop *loop
	now  func() time.Time
}

type joinInput struct {
	Name string `path:"name"`
	Body api.JoinRequest
}

// Join makes a machine a node: it shows a join token and its own key, and gets
// a certificate for it. To ask again with the same key is fine.
func (s *Keys) Join(ctx context.Context, in *joinInput) (*api.JoinResponse, error) {
	id := caller(ctx)
	if !site.NodeNameRule.MatchString(in.Name) {
		return nil, &api.Error{Status: 400, Code: api.CodeBadRequest, Message: fmt.Sprintf("%q is no node name", in.Name)}
	}
	if id.node != "" && id.node != in.Name {
		return nil, denied(fmt.Sprintf("this token is for node %s, not for %s", id.node, in.Name), "see name in the node's gnoded.yaml")
	}
	certificate, key, err := s.pki.SignNode(in.Name, []byte(in.Body.Request))
	if err != nil {
		return nil, &api.Error{Status: 400, Code: api.CodeBadRequest, Message: err.Error()}
	}
	s.keys.change.Lock()
	defer s.keys.change.Unlock()
	out := &api.JoinResponse{Certificate: string(certificate)}
	old := s.keys.node(in.Name)
	if old != nil && old.Key != key {
		return nil, &api.Error{Status: 409, Code: api.CodeConflict, Message: fmt.Sprintf("there is a node %s already, with another key", in.Name),
			Hint: "if this machine replaces it, an operator drops the old one by `gadm forget " + in.Name + "`; else give this one another name"}
	}
	if old != nil && old.Token == id.token {
		return out, nil // the first answer was lost
	}
	if n := s.loop.View().Node(in.Name); old == nil && n != nil && !n.Lost {
		return nil, &api.Error{Status: 409, Code: api.CodeConflict, Message: fmt.Sprintf("there is a node %s already, in contact by the controller's own socket or until lately", in.Name),
			Hint: "give this one another name, or wait until ginfo shows the other as lost"}
	}
	t, ok := s.keys.token(id.token)
	if !ok || t.Left < 1 || !t.Revoked.IsZero() {
		return nil, unauthorized("get a new one: gadm node-token create", "the token %s has been used up", id.token)
	}
	t.Left--
	n := &nodeKey{Key: key, Joined: s.now().UTC(), Token: t.ID}
	if err := s.loop.commit(ctx, "node "+in.Name, "joined with key "+key, tokenRecord(t), nodeKeyRecord(in.Name, n)); err != nil {
		return nil, err
	}
	s.keys.putToken(t)
	s.keys.putNode(in.Name, n)
	return out, nil
}

// Renew gives a node its next certificate, for the key that it has.
func (s *Keys) Renew(ctx context.Context, in *joinInput) (*api.JoinResponse, error) {
	if id := caller(ctx); id.role != roleNode || id.node != in.Name {
		return nil, denied("only the node itself renews its certificate", "")
	}
	certificate, key, err := s.pki.SignNode(in.Name, []byte(in.Body.Request))
	if err != nil {
		return nil, &api.Error{Status: 400, Code: api.CodeBadRequest, Message: err.Error()}
	}
	if n := s.keys.node(in.Name); n == nil || n.Key != key {
		return nil, &api.Error{Status: 409, Code: api.CodeConflict, Message: "a node keeps its key", Hint: "to change it, have the node forgotten and join again"}
	}
	return &api.JoinResponse{Certificate: string(certificate)}, nil
}

// Revoke takes a node's key away: what it has open ends, it falls silent,
// and what runs there is lost in time.
func (s *Keys) Revoke(ctx context.Context, in *nodeName) error {
	s.keys.change.Lock()
	defer s.keys.change.Unlock()
	if s.keys.node(in.Name) == nil {
		return &api.Error{Status: 404, Code: api.CodeNotFound, Message: fmt.Sprintf("no node %q has joined with a key", in.Name)}
	}
	if err := s.loop.commit(ctx, "node "+in.Name, "key revoked", nodeKeyRecord(in.Name, nil)); err != nil {
		return err
	}
	s.keys.putNode(in.Name, nil)
	return nil
}

// Forget drops a node that is gone for good, and its key with it.
func (s *Keys) Forget(ctx context.Context, in *nodeName) error {
	s.keys.change.Lock()
	defer s.keys.change.Unlock()
	if s.loop.View().Node(in.Name) == nil && s.keys.node(in.Name) != nil { // it has joined and never spoken
		if err := s.loop.commit(ctx, "node "+in.Name, "forgotten", nodeKeyRecord(in.Name, nil)); err != nil {
			return err
		}
	} else if err := s.loop.change(ctx, control.Forget{Node: in.Name}, nodeKeyRecord(in.Name, nil)); err != nil {
		return err
	}
	s.keys.putNode(in.Name, nil)
	return nil
}
