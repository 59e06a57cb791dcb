package nodes

import (
	"cmp"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/pki"
	"gbatch/internal/state"
	"gbatch/oci/ref"
)

// Which nodes get an image at about the same time is known here alone. The first to be ordered a
// job of it has it from the registry, and each later one is told of some before it. This is kept in
// memory only: a controller that has just begun sends nodes to the registry.

// sharers are the nodes that have got images lately.
type sharers struct {
	mu     sync.Mutex
	images map[string]*sharing // by reference
}

// sharing are the nodes that have got one image lately, by the time that they were ordered a job of it.
type sharing struct {
	nodes []sharer
	gone  int            // how many were before them
	at    map[string]int // places of nodes, those that are gone counted
}

type sharer struct {
	node string
	at   time.Time
}

const (
	shareFor   = 10 * time.Minute // nodes keep layers for others as long
	maxSharing = 1024             // nodes of one image; more than that only ask
	maxImages  = 4096
	ticketFor  = time.Hour // longer than a pull may take
)

// join adds a node, and returns those that it may ask, in order. Each node serves about four, so
// that none sends all others what it gets. New says that it was not there yet.
func (s *sharers) join(image, node string, now time.Time) (before []string, isNew bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.images[image]
	if of == nil {
		if !s.room(now) {
			return nil, false
		}
		of = &sharing{at: map[string]int{}}
		s.images[image] = of
	}
	of.forget(now)
	place, had := of.at[node]
	if !had {
		place = of.gone + len(of.nodes)
		if len(of.nodes) < maxSharing {
			of.nodes = append(of.nodes, sharer{node, now})
			of.at[node] = place
		}
	}
	i := place - of.gone
	for _, j := range []int{(i - 1) / 4, (i - 1) / 2, i - 1, 0} {
		if j >= 0 && j < i && j < len(of.nodes) && !slices.Contains(before, of.nodes[j].node) {
			before = append(before, of.nodes[j].node)
		}
	}
	return before, !had
}

// forget drops nodes that do not keep the image's layers any more.
func (of *sharing) forget(now time.Time) {
	n := 0
	for n < len(of.nodes) && now.Sub(of.nodes[n].at) >= shareFor {
		delete(of.at, of.nodes[n].node)
		n++
	}
	of.nodes, of.gone = of.nodes[n:], of.gone+n
}

// room sees to it that one more image can be kept.
func (s *sharers) room(now time.Time) bool {
	if s.images == nil {
		s.images = map[string]*sharing{}
	}
	if len(s.images) < maxImages {
		return true
	}
	for name, of := range s.images {
		if of.forget(now); len(of.nodes) == 0 {
			delete(s.images, name)
		}
	}
	return len(s.images) < maxImages
}

// imagePeers are the nodes that a node may ask for an image's layers; nil: none. Where it was told
// of them lately it has the image, or has tried, and is told again only if it is asked for.
func (s *Exchange) imagePeers(of string, n *state.Node, again bool) *api.ImagePeers {
	if n == nil || n.Inventory.ImagePort == 0 || s.Sign == nil {
		return nil
	}
	name, _, err := ref.Parse(of)
	if err != nil || name.Local() {
		return nil
	}
	now := s.Now()
	before, isNew := s.sharers.join(name.String(), n.Name, now)
	if len(before) == 0 || !isNew && !again {
		return nil
	}
	p := &api.ImagePeers{}
	for _, other := range before {
		at := s.Loop.View().Node(other)
		if at == nil || at.Inventory.ImagePort == 0 {
			continue
		}
		if word, _ := at.State(); word != "up" {
			continue
		}
		host := cmp.Or(at.Inventory.Address, at.Inventory.DNSName, at.Inventory.Hostname, at.Name)
		p.Nodes = append(p.Nodes, api.ImagePeer{Node: other, Address: net.JoinHostPort(host, strconv.Itoa(at.Inventory.ImagePort))})
	}
	if len(p.Nodes) == 0 {
		return nil
	}
	p.Ticket, p.Authority, err = s.Sign(pki.LayersTicket{Node: n.Name, Image: name.Name(), Until: now.Add(ticketFor)})
	if err != nil {
		s.Log.Error("a node is not told of others that have an image", "node", n.Name, "error", err)
		return nil
	}
	return p
}
