package adm

import (
	"context"
	"fmt"
	"strings"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/cli/exit"
	"gbatch/internal/client"
)

// lookAgain is how often nodes that are being drained are looked at.
const lookAgain = 2 * time.Second

// await waits until nothing is to be waited for at any of the nodes, and says what is
// whenever that changes. 0 is any time. Jobs that come meanwhile by name of a node
// cannot be: the nodes are drained.
func await(ctx context.Context, a *cli.App, nodes []string, most time.Duration, what func(*api.Node) (string, error)) error {
	if most > 0 {
		timed, cancel := context.WithTimeoutCause(ctx, most, errLate)
		defer cancel()
		ctx = timed
	}
	for said := ""; ; {
		busy, err := waitedFor(ctx, a, nodes, what)
		if err == nil && busy == "" {
			return nil
		}
		if err == nil && busy != said {
			a.Say("waiting for %s", busy)
			said = busy
		}
		if err == nil {
			err = client.Sleep(ctx, lookAgain)
		}
		if context.Cause(ctx) == errLate {
			return fmt.Errorf("%w: after %v: %s; nothing new starts there, and what runs goes on", errLate, most, said)
		}
		if err != nil {
			return err
		}
	}
}

var errLate = &exit.Error{Code: exit.Failure, Err: fmt.Errorf("the deadline is over")}

func waitedFor(ctx context.Context, a *cli.App, nodes []string, what func(*api.Node) (string, error)) (string, error) {
	var list []string
	for _, name := range nodes {
		n, err := a.Client.Node(ctx, name)
		if err != nil {
			return "", err
		}
		text, err := what(&n.Node)
		if err != nil {
			return "", err
		}
		if text != "" {
			list = append(list, text)
		}
	}
	return strings.Join(list, ", "), nil
}

// busyNode is what keeps a node from being empty.
func busyNode(n *api.Node) (string, error) {
	if n.Jobs == 0 {
		return "", nil
	}
	return fmt.Sprintf("%d jobs on %s", n.Jobs, n.Name), nil
}

// awayNode is what keeps a node from being back after its reboot.
func awayNode(n *api.Node) (string, error) {
	switch n.Reboot {
	case "":
		return "", nil
	case "pending":
		return busyNode(n)
	case "sent":
		return n.Name + " to be back", nil
	}
	return "", &exit.Error{Code: exit.Failure, Err: fmt.Errorf("%s: %s", n.Name, n.Reason)}
}
