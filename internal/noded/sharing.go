package noded

import (
	"context"

	"gbatch/internal/api"
	"gbatch/internal/noded/peers"
	"gbatch/oci/image/share"
)

// openSharing takes the address on which other nodes are given image layers, if there is one.
func (a *Agent) openSharing() error {
	if a.toNodes == nil {
		return nil
	}
	a.sharing = &peers.Server{Config: &a.cfg.Images.Peers, TLS: a.toNodes, Source: a.images.Store, Sent: a.counters.Sent, Log: a.log}
	return a.sharing.Listen()
}

func (a *Agent) runSharing(ctx context.Context) {
	if a.sharing != nil {
		a.sharing.Run(ctx)
	}
}

// sharesOn is the port on which other nodes are given image layers; 0: they are not.
func (a *Agent) sharesOn() int {
	if a.sharing == nil {
		return 0
	}
	return a.sharing.Port()
}

// peers are the nodes that the controller named for an image.
func (a *Agent) peers(p *api.ImagePeers) []share.Peer { return peers.Of(a.toNodes, p) }
