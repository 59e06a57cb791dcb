package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"gbatch/internal/job"
	"gbatch/internal/job/importer/slurm"
)

// Reservation asks the controller for one, by its name or UUID.
func (a *App) Reservation(ctx context.Context) func(name string) (slurm.Reservation, error) {
	return func(name string) (slurm.Reservation, error) {
		list, err := a.Client.Reservations(ctx)
		if err != nil {
			return slurm.Reservation{}, err
		}
		var names []string
		for _, r := range list.Reservations {
			if names = append(names, r.Name); r.Name != name && (r.UUID == "" || !strings.EqualFold(r.UUID, name)) {
				continue
			}
			if r.UUID == "" { // who it is not for is not told
				return slurm.Reservation{}, fmt.Errorf("reservation %s is for others", r.Name)
			}
			return slurm.Reservation{ID: r.UUID, Nodes: r.Nodes, Start: job.Instant(r.Start.UnixMilli())}, nil
		}
		if len(names) == 0 {
			return slurm.Reservation{}, errors.New("there are no reservations")
		}
		return slurm.Reservation{}, fmt.Errorf("there is no such reservation, only %s", strings.Join(names, ", "))
	}
}
