package ctld

import (
	"context"
	"errors"

	"gbatch/internal/api"
	"gbatch/internal/ctld/controllers"
	"gbatch/internal/ctld/copies"
	"gbatch/internal/ctld/follow"
	"gbatch/internal/ctld/loop"
	"gbatch/internal/ctld/trees"
	"gbatch/internal/pki"
	"gbatch/internal/replica"
)

// leadership is what a controller has that was chosen among several.
type leadership struct {
	*replica.Lead // its store stays open when the server is closed
	clock         *loop.Clock
	jobs          *follow.Jobs // which were read while another one led
	members       *controllers.Members
	others        *copies.Others // which take copies of logs and of uploaded directories
	trees         *trees.Store   // as they came while another one led
	front         *front         // where who asks was told to wait
	pki           *pki.Authority // by which that is reached
}

// fresh is nil while what this controller knows is not behind what another one has decided. A majority is asked, once for
// all who want to know at the same time.
func (l *leadership) fresh(ctx context.Context) *api.Error {
	err := l.Fresh(ctx)
	if err == nil {
		return nil
	}
	if errors.Is(err, replica.ErrLost) {
		return api.Errorf(api.CodeElsewhere, "this controller does not lead any more: nothing was done").WithHint("try again in a second: another one will lead")
	}
	return api.Errorf(api.CodeUnavailable, "the request was broken off")
}
