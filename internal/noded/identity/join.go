package identity

import (
	"context"
	"log/slog"
	"os"
	"time"

	"gbatch/internal/api"
	"gbatch/internal/client"
	"gbatch/internal/noded/config"
)

// joinTimeout bounds the exchange with the controller.
const joinTimeout = 15 * time.Second

// Joined says whether this machine has a key that the configuration's
// controller has signed, so that it needs no token. Beside the controller's
// socket it never does.
func Joined(c config.Config, version string) (bool, error) {
	if err := os.MkdirAll(c.StateDir, 0o711); err != nil {
		return false, err
	}
	k, err := OpenCredential(&c)
	if err != nil || k.key == nil {
		return k != nil, err
	}
	if k.Lacking() {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), joinTimeout)
	defer cancel()
	ctl := Dial(&c, k, version)
	defer ctl.Close()
	_, err = ctl.Status(ctx)
	if client.IsCode(err, api.CodeUnauthorized) {
		return false, nil // of another controller, or forgotten by it
	}
	return err == nil, err
}

// Join makes this machine a node of its controller by the token in
// JoinTokenFile: it gets a key and a certificate in its state directory, and the
// token is not needed any more.
func Join(ctx context.Context, c config.Config, version string) error {
	ctx, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	if err := os.MkdirAll(c.StateDir, 0o711); err != nil {
		return err
	}
	k, err := OpenCredential(&c)
	if err != nil || k.key == nil {
		return err
	}
	ctl := Dial(&c, k, version)
	defer ctl.Close()
	return k.join(ctx, ctl, slog.New(slog.DiscardHandler))
}
