package ctld

import (
	"strings"
	"testing"

	"gbatch/internal/api"
	"gbatch/internal/client"
	"gbatch/internal/job"
	"gbatch/internal/node"
)

// TestNodeJoins: from a token to a node that is known by its key, over restarts.
func TestNodeJoins(t *testing.T) {
	s := newSite(t, nil)
	m := s.machine("gpu1")
	if _, err := m.NodeSync(t.Context(), "gpu1", m.hello()); !client.IsCode(err, api.CodeUnauthorized) {
		t.Errorf("a machine that has not joined: %v", err)
	}
	tok := s.token(api.TokenRequest{Use: api.TokenJoin})
	for range 2 { // the first answer was lost
		if err := m.join(t, tok.Secret); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if _, err := m.NodeSync(t.Context(), "gpu1", m.hello()); err != nil {
			t.Fatal(err)
		}
		text, err := m.RenewNode(t.Context(), "gpu1", m.request)
		if err != nil {
			t.Fatal(err)
		}
		if m.cert, err = m.pair(text); err != nil {
			t.Fatal(err)
		}
		s.stop()
		s.start()
		m.Close()
		m.Client = &client.Client{Address: s.remote(), Certificate: m.Certificate}
		defer m.Close()
	}
	if st, err := m.Status(t.Context()); err != nil || st.Role != "node" || st.You != "node gpu1" {
		t.Errorf("it is taken for %+v, %v", st, err)
	}
}

// TestNodesSpeakForThemselves: what a node cannot do in another's name.
func TestNodesSpeakForThemselves(t *testing.T) {
	s := newSite(t, nil)
	good, bad := s.joined("gpu1"), s.joined("gpu2")
	if _, err := good.NodeSync(t.Context(), "gpu1", good.hello()); err != nil {
		t.Fatal(err)
	}
	if _, err := bad.NodeSync(t.Context(), "gpu1", bad.hello()); !client.IsCode(err, api.CodeDenied) {
		t.Errorf("a sync as another node: %v", err)
	}
	if _, err := bad.RenewNode(t.Context(), "gpu1", bad.request); !client.IsCode(err, api.CodeDenied) {
		t.Errorf("a certificate of another node: %v", err)
	}
	if _, err := good.RenewNode(t.Context(), "gpu1", bad.request); !client.IsCode(err, api.CodeConflict) {
		t.Errorf("a certificate for another key: %v", err)
	}
	claims := s.machine("gpu1")
	if err := claims.join(t, s.token(api.TokenRequest{Use: api.TokenJoin}).Secret); !client.IsCode(err, api.CodeConflict) {
		t.Errorf("another machine that joins by the name: %v", err)
	}
	// A node that the controller knows by its own socket has a name, too.
	s.node("local")
	if err := s.machine("local").join(t, s.token(api.TokenRequest{Use: api.TokenJoin}).Secret); !client.IsCode(err, api.CodeConflict) {
		t.Errorf("the name of a node in contact by the socket: %v", err)
	}
}

func TestJoinTokens(t *testing.T) {
	s := newSite(t, nil)
	two := s.token(api.TokenRequest{Use: api.TokenJoin, Uses: 2})
	for i, want := range []string{"", "", "used up"} {
		err := s.machine([]string{"a", "b", "c"}[i]).join(t, two.Secret)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("use %d: %v, want %q", i+1, err, want)
		}
	}
	named := s.token(api.TokenRequest{Use: api.TokenJoin, Node: "d"})
	if err := s.machine("e").join(t, named.Secret); !client.IsCode(err, api.CodeDenied) {
		t.Errorf("a token for another node: %v", err)
	}
	if err := s.machine("d").join(t, named.Secret); err != nil {
		t.Errorf("a token for this node: %v", err)
	}
	gone := s.token(api.TokenRequest{Use: api.TokenJoin})
	if err := s.RevokeToken(t.Context(), gone.ID); err != nil {
		t.Fatal(err)
	}
	if err := s.machine("f").join(t, gone.Secret); !client.IsCode(err, api.CodeUnauthorized) {
		t.Errorf("a revoked token: %v", err)
	}
	user := s.token(api.TokenRequest{Use: api.TokenUser, User: "ann"})
	if err := s.machine("g").join(t, user.Secret); !client.IsCode(err, api.CodeDenied) {
		t.Errorf("a user's token: %v", err)
	}
	if err := s.machine("../h").join(t, s.token(api.TokenRequest{Use: api.TokenJoin}).Secret); err == nil {
		t.Error("a name that is none was taken")
	}
}

// TestRevokedNode: a node whose key is taken away is heard no more, also in the
// poll that it has open, and gets no orders by it.
func TestRevokedNode(t *testing.T) {
	s := newSite(t, nil)
	m := s.joined("gpu1")
	resp, err := m.NodeSync(t.Context(), "gpu1", m.hello())
	if err != nil {
		t.Fatal(err)
	}
	q := m.hello()
	q.Seen, q.WaitMS, q.Inventory = resp.Version, 20_000, nil
	polled := make(chan error, 1)
	go func() { // ends with the poll
		_, err := m.NodeSync(t.Context(), "gpu1", q)
		polled <- err
	}()
	waitFor(t, "the poll is open", func() bool {
		return s.server.loop.Nodes.Waiting("gpu1") > 0
	})
	if err := s.RevokeNode(t.Context(), "gpu1"); err != nil {
		t.Fatal(err)
	}
	if err := <-polled; !client.IsCode(err, api.CodeUnauthorized) {
		t.Errorf("the open poll was answered %v", err)
	}
	if _, err := m.NodeSync(t.Context(), "gpu1", q); !client.IsCode(err, api.CodeUnauthorized) {
		t.Errorf("the next one: %v", err)
	}
	if err := s.RevokeNode(t.Context(), "gpu1"); !client.IsCode(err, api.CodeNotFound) {
		t.Errorf("to revoke it twice: %v", err)
	}
}

// TestForgottenNode: with a node that is forgotten goes its key, and another
// machine may have the name.
func TestForgottenNode(t *testing.T) {
	s := newSite(t, nil)
	old := s.joined("gpu1")
	if err := s.Forget(t.Context(), "gpu1", false); err != nil { // it has never spoken
		t.Fatal(err)
	}
	if _, err := old.NodeSync(t.Context(), "gpu1", old.hello()); !client.IsCode(err, api.CodeUnauthorized) {
		t.Errorf("the forgotten node: %v", err)
	}
	if err := s.machine("gpu1").join(t, s.token(api.TokenRequest{Use: api.TokenJoin}).Secret); err != nil {
		t.Errorf("another machine by its name: %v", err)
	}
	if err := s.Forget(t.Context(), "none", false); !client.IsCode(err, api.CodeNotFound) {
		t.Errorf("a node that is not known: %v", err)
	}
}

// TestWrongClock: times that a node with a wrong clock reports are moved to
// ours, and it is said.
func TestWrongClock(t *testing.T) {
	s := newSite(t, nil)
	s.submit(hello(1), "")
	m := s.joined("gpu1")
	const ahead = 3600_000
	sync := func(rank *node.RankStatus) *api.SyncResponse {
		q := m.hello()
		q.NowMS = s.server.now().UnixMilli() + ahead
		if rank != nil {
			q.Ranks = []node.RankStatus{*rank}
		}
		r, err := m.NodeSync(t.Context(), "gpu1", q)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	sync(nil)
	id := job.RankID{Job: 1, Attempt: 1}
	sync(&node.RankStatus{ID: id, Phase: node.PhaseRunning})
	began := s.server.now().UnixMilli()
	sync(&node.RankStatus{ID: id, Phase: node.PhaseEnded, Exit: &node.Exit{StartedMS: began + ahead - 200, EndedMS: began + ahead}})
	d := s.job("1")
	if d.State != job.Finished || d.Ended.UnixMilli() > began+60_000 || d.Started.UnixMilli() > began+60_000 {
		t.Errorf("the job is %s, started %v, ended %v", d.State, d.Started, d.Ended)
	}
	e := d.Attempts[0].Ranks[0].Exit
	if off := e.EndedMS - began; off < -30_000 || off > 30_000 || e.EndedMS-e.StartedMS != 200 {
		t.Errorf("its exit says %+v, now is %d", e, began)
	}
	c, err := s.Cluster(t.Context())
	if err != nil || len(c.Nodes) != 1 || c.Nodes[0].SkewMS < ahead-60_000 {
		t.Errorf("the node is shown as %+v, %v", c.Nodes, err)
	}
	q := m.hello()
	q.NowMS = s.server.now().UnixMilli()
	if _, err := m.NodeSync(t.Context(), "gpu1", q); err != nil {
		t.Fatal(err)
	}
	if c, err = s.Cluster(t.Context()); err != nil || c.Nodes[0].SkewMS != 0 {
		t.Errorf("a clock that is right again: %+v, %v", c.Nodes, err)
	}
}
