package config

import (
	"net"
	"strings"
)

// ImagePeers is how image layers are shared with other nodes that are configured to.
type ImagePeers struct {
	// Listen is a TCP address by which other nodes of the site reach this one, as :9402. Only
	// they are served. Default: none; layers come from registries alone, and go to nobody.
	Listen string `yaml:"listen"`
	// Keep is how much of layers is kept as they came, for ten minutes after their last use.
	// It counts beside images.maxSize. Default 20GiB; at least 1MiB.
	Keep Size `yaml:"keep"`
	// Uploads is how many layers are sent at the same time. Default 16; 1 to 256.
	Uploads int `yaml:"uploads"`
	// Rate is how many bytes are sent in a second, to all together. Default 500MiB; at least 16MiB.
	Rate Size `yaml:"rate"`
}

func (p *ImagePeers) setDefaults() {
	setDefault(&p.Keep, 20<<30)
	setDefault(&p.Uploads, 16)
	setDefault(&p.Rate, 500<<20)
}

func checkImagePeers(c *Config, bad func(string, string, ...any)) {
	p := &c.Images.Peers
	if p.Listen != "" {
		if _, _, err := net.SplitHostPort(p.Listen); err != nil {
			bad("images.peers.listen", "%q: want ADDRESS:PORT or :PORT, as :9402", p.Listen)
		}
		if !strings.HasPrefix(c.Controller, "https:") {
			bad("images.peers.listen", "nodes know each other by the certificates that they join with: give the controller's https address, as `gadm join-string` prints it")
		}
	}
	bounds[Size]{1 << 20, 1 << 50}.check(bad, "images.peers.keep", p.Keep)
	bounds[Size]{16 << 20, 1 << 40}.check(bad, "images.peers.rate", p.Rate)
	if p.Uploads < 1 || p.Uploads > 256 {
		bad("images.peers.uploads", "%d: must be 1 to 256", p.Uploads)
	}
}
