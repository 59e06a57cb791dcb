package image

import (
	"maps"
	"slices"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"gbatch/oci/image/share"
	"gbatch/oci/ref"
)

// PullRequest asks for one image.
type PullRequest struct {
	Ref ref.Ref
	// Credentials of the user; nil: the node's own, or none.
	Credentials *ref.Credentials
	// HoldID, if set, makes a Hold before Pull returns, so that no GC can
	// come in between.
	HoldID string
	// AskedSince lets an answer do that the registry gave to another pull of the same reference and
	// login, if it was asked since then and not long ago, and the image is here; zero: it is asked again.
	AskedSince time.Time
	// Peers are other nodes that may have the layers, in the order in which they are asked.
	Peers []share.Peer
	// Progress, if set, is called often, from other goroutines but never from
	// two at once, and not after Pull has returned. It must be quick.
	Progress func(Progress)
}

// Phase of a pull.
type Phase string

// The phases, in order.
const (
	PhaseResolve  Phase = "resolve"
	phaseDownload Phase = "download"
	PhaseUnpack   Phase = "unpack" // all bytes are here, the last are being written
)

// Progress of a pull. Layers that the node had already are counted in Layers
// and LayersDone but not in bytes.
type Progress struct {
	Phase              Phase
	Bytes, Total       int64 // compressed; Bytes falls back when a layer is tried again
	Layers, LayersDone int
	// Digest is Image.Digest, as soon as it is known.
	Digest string
}

// Image is ready to run. Its directories stay until it is not held and GC
// removes it.
type Image struct {
	Ref ref.Ref // as asked for, with the digest
	// Digest pins what the reference named when it was pulled: that of the
	// index if it is an image for many platforms, so that nodes of other
	// architectures can use it too.
	Digest string
	Config ImageConfig
	// Layers are directories, lowest first, for an overlay's lower layers.
	// They belong to the store and must not be written to. The directory
	// above them all (the upper one) gives the root directory its mode.
	Layers []string
	Size   int64 // unpacked bytes, shared layers included
}

// ImageConfig is what the image says about how to run it.
type ImageConfig struct {
	Env          []string
	Entrypoint   []string
	Cmd          []string
	WorkingDir   string
	User         string
	StopSignal   string
	Labels       map[string]string
	ExposedPorts []string // "8080/tcp", sorted
	Volumes      []string // sorted
}

func configOf(c v1.Config) ImageConfig {
	return ImageConfig{
		Env: c.Env, Entrypoint: c.Entrypoint, Cmd: c.Cmd,
		WorkingDir: c.WorkingDir, User: c.User, StopSignal: c.StopSignal, Labels: c.Labels,
		ExposedPorts: slices.Sorted(maps.Keys(c.ExposedPorts)),
		Volumes:      slices.Sorted(maps.Keys(c.Volumes)),
	}
}
