package kubernetes

import (
	"strings"

	"gbatch/internal/document"
)

// lifecycleFields are what a container does at its start and its end.
var lifecycleFields = []field[container]{
	{"preStop", refuse[container]("let the command do it when it is to stop, before the program hears of it: " +
		"in a shell `trap 'HOOK; kill $!; wait $!' TERM; PROGRAM & wait $!`"), false},
	{"postStart", refuse[container]("let the command start it beside the program: in a shell `HOOK & exec PROGRAM`; what is to end before the program begins can be an init container"), false},
	{"stopSignal", func(d *decoder, n *node, c *container) {
		if c.prefix != "" {
			d.Problem(n, "is of another container than the job's own, as which it is stopped", "remove it, or give it to the first container")
			return
		}
		if word, ok := d.OneOf(n, "SIGTERM", "SIGINT", "SIGHUP", "SIGUSR1", "SIGUSR2"); ok {
			c.spec.Gbatch.StopSignal = strings.TrimPrefix(word, "SIG")
			d.Becomes("gbatch.stopSignal", n)
		}
	}, false},
}

func readLifecycle(d *decoder, n *node, c *container) {
	document.Object(d, n, lifecycleFields, c)
}
