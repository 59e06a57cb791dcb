package controllers

import (
	"log/slog"
	"strings"
	"testing"

	"gbatch/internal/api"
	"gbatch/internal/ctld/access"
	"gbatch/internal/ctld/site"
	"gbatch/internal/replica"
)

// TestAddRefused: no controller is let in, and no key given out, where another one has its name or its
// address, or where it is not root of this machine who asks.
func TestAddRefused(t *testing.T) {
	all := []replica.Member{{Name: "a", Address: "a:1", Voter: true, Leads: true}, {Name: "b", Address: "b:1", Voter: true}, {Name: "c", Address: "c:1"}}
	for _, test := range []struct {
		name          string
		alone, nobody bool
		add           api.NewController
		want          string
	}{
		{name: "name of one that counts", add: api.NewController{Name: "b", Address: "b2:1"}, want: "there is a controller b already, at b:1"},
		{name: "one that counts, once more", add: api.NewController{Name: "b", Address: "b:1"}, want: "there is a controller b already, at b:1"},
		{name: "name of one that joins", add: api.NewController{Name: "c", Address: "c2:1"}, want: "there is a controller c already, at c:1"},
		{name: "its own name", add: api.NewController{Name: "a", Address: "d:1"}, want: "there is a controller a already, at a:1"},
		{name: "address of another one", add: api.NewController{Name: "d", Address: "b:1"}, want: "controller b has the address b:1 already"},
		{name: "no address", add: api.NewController{Name: "d", Address: "d"}, want: `"d": want HOST:PORT`},
		{name: "no name", add: api.NewController{Name: "d/e", Address: "d:1"}, want: `"d/e" is no name of a controller`},
		{name: "not root", nobody: true, add: api.NewController{Name: "d", Address: "d:1"}, want: "only root on this machine gets it"},
		{name: "the only one", alone: true, add: api.NewController{Name: "d", Address: "d:1"}, want: "this controller is the only one"},
	} {
		t.Run(test.name, func(t *testing.T) {
			// Without a loop: whoever came as far as to write something down would fail.
			h := &Handlers{Dir: t.TempDir()}
			if !test.alone {
				h.Members = New(&members{all: all}, site.Config{Replica: &site.Replica{Name: "a"}}, slog.New(slog.DiscardHandler))
			}
			file, err := h.Add(access.WithCaller(t.Context(), access.Identity{Root: !test.nobody}, ""), &addInput{Body: test.add})
			if err == nil || !strings.Contains(err.Error(), test.want) || file != nil {
				t.Errorf("file %v, error %v, want one with %q", file, err, test.want)
			}
		})
	}
}

// TestSettled: members on whom a majority does not agree yet are not shown, and nothing is decided by them.
func TestSettled(t *testing.T) {
	all := []replica.Member{{Name: "a", Leads: true}, {Name: "b"}}
	h := &Handlers{Dir: t.TempDir(), Members: New(&members{all: all, open: true}, site.Config{Replica: &site.Replica{Name: "a"}}, slog.New(slog.DiscardHandler))}
	root := access.WithCaller(t.Context(), access.Identity{Root: true}, "")
	list, err := h.List(root, nil)
	_, added := h.Add(root, &addInput{Body: api.NewController{Name: "c", Address: "c:1"}})
	for what, err := range map[string]error{"list": err, "add": added, "remove": h.Remove(root, &nameInput{Name: "x"}), "transfer": h.Transfer(root, &nameInput{Name: "x"})} {
		if err == nil || !strings.Contains(err.Error(), "does not agree") || list != nil {
			t.Errorf("%s: %v, %v", what, list, err)
		}
	}
}

// TestRemoveRefused: the one that leads is not removed, nor one that is not there.
func TestRemoveRefused(t *testing.T) {
	h := &Handlers{Members: New(&members{all: []replica.Member{{Name: "a", Leads: true}, {Name: "b"}}}, site.Config{Replica: &site.Replica{Name: "a"}}, slog.New(slog.DiscardHandler))}
	for name, want := range map[string]string{"a": "controller a leads", "x": `no controller has the name "x"`} {
		if err := h.Remove(t.Context(), &nameInput{Name: name}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("remove %s: %v, want %q", name, err, want)
		}
	}
}
