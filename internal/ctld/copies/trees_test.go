package copies

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/ctld/trees"
	"gbatch/internal/pki"
	"gbatch/internal/replica"
	"gbatch/internal/tree"
)

// TestTrees: what another controller is asked of uploaded directories is what its store
// answers, whatever the user is called; one that leads or is too old says so.
func TestTrees(t *testing.T) {
	ca, err := pki.Open(t.TempDir(), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	accept, _ := ca.MemberTLS()
	has := newPlace(t, accept)
	all := []replica.Member{{Name: "c1", Voter: true, Leads: true}, {Name: "c2", Address: has.address, Voter: true}, {Name: "c3", Address: "127.0.0.1:1", Voter: true}}
	o := NewOthers("c1", func() ([]replica.Member, error) { return all, nil }, ca.CopyTLS)
	defer o.Close()
	peers, err := o.Trees().Peers()
	if err != nil || len(peers) != 2 || peers[0].Name() != "c2" {
		t.Fatalf("the others are %v, %v", peers, err)
	}
	p, ctx, user := peers[0], t.Context(), "ann/..% ü"
	data := []byte("text")
	c := trees.Copy{Kept: trees.Kept{Manifest: tree.Manifest{Chunks: []tree.Chunk{{Sum: tree.SumOf(data), Size: 4}}}, Files: 1, Bytes: 2}, Wanted: time.Unix(1_800_000_000, 0).UTC()}
	if none, err := p.Tree(ctx, user, c.ID()); none != nil || err != nil {
		t.Errorf("before: %v, %v", none, err)
	}
	if none, err := p.Chunk(ctx, user, tree.SumOf(data)); none != nil || err != nil {
		t.Errorf("before: %q, %v", none, err)
	}
	missing, err := p.Take(ctx, user, c)
	if diff := cmp.Diff([]string{tree.SumOf(data)}, missing); diff != "" || err != nil {
		t.Errorf("missing (-want +got):\n%s%v", diff, err)
	}
	if err := p.TakeChunk(ctx, user, tree.SumOf([]byte("other")), data); err == nil || !strings.Contains(err.Error(), "SHA-256") {
		t.Errorf("damaged on the way: %v", err)
	}
	if err := p.TakeChunk(ctx, user, tree.SumOf(data), data); err != nil {
		t.Error(err)
	}
	if missing, err = p.Take(ctx, user, c); len(missing) > 0 || err != nil {
		t.Errorf("with its chunk: %q, %v", missing, err)
	}
	got, err := p.Tree(ctx, user, c.ID())
	if diff := cmp.Diff(&c, got); diff != "" || err != nil {
		t.Errorf("it has (-want +got):\n%s%v", diff, err)
	}
	if got, err := p.Chunk(ctx, user, tree.SumOf(data)); string(got) != "text" || err != nil {
		t.Errorf("its chunk is %q, %v", got, err)
	}
	listed, err := p.Trees(ctx)
	for _, ids := range listed {
		for id, at := range ids {
			ids[id] = at.UTC()
		}
	}
	if diff := cmp.Diff(map[string]map[string]time.Time{user: {c.ID(): c.Wanted}}, listed); diff != "" || err != nil {
		t.Errorf("all are (-want +got):\n%s%v", diff, err)
	}
	names := func(ctx context.Context, p trees.Peer) error { _, err := p.Trees(ctx); return err }
	for range 2 { // the second time the one that is away is not asked
		if err := o.Trees().Do(ctx, names); err != nil {
			t.Errorf("one of two others answers: %v", err)
		}
	}
	if err := p.Drop(ctx, user, c.ID()); err != nil {
		t.Error(err)
	}
	if none, err := p.Tree(ctx, user, c.ID()); none != nil || err != nil {
		t.Errorf("dropped: %v, %v", none, err)
	}
	has.held.Store(nil)
	if err := o.Trees().Do(ctx, names); err == nil || !strings.Contains(err.Error(), "leads") || !strings.Contains(err.Error(), "c3 did not answer") {
		t.Errorf("one leads, one is away: %v", err)
	}
}
