package site

import (
	"fmt"

	"gbatch/internal/reach"
)

// Notify is where web addresses may lead that users name in gbatch.notify. Without it
// that is the internet, over https.
type Notify struct {
	Hosts     []string `yaml:"hosts"`     // may be reached whatever their addresses are: HOST, HOST:PORT, or a network
	PlainHTTP bool     `yaml:"plainHTTP"` // http:// is allowed beside https://
}

func (n *Notify) check(bad func(path, format string, a ...any)) {
	for i, h := range n.Hosts {
		if wrong := reach.CheckHost(h); wrong != "" {
			bad(fmt.Sprintf("notify.hosts[%d]", i), "%q: %s", h, wrong)
		}
	}
}
