package slurm

import (
	"errors"
	"strings"

	"gbatch/internal/job"
)

// Reservation is what a job needs to know of one that it names.
type Reservation struct {
	ID    string // its UUID
	Nodes []string
	Start job.Instant
}

// reservation lets the job into the reservation, and as in Slurm nowhere else.
func (s *script) reservation(v string) error {
	switch {
	case strings.Contains(v, ","):
		return errors.New("names several reservations: name one")
	case s.o.Reservation == nil:
		return errors.New("is looked up at the controller when the job is submitted, which is not asked now: name its UUID in request.scheduling.reservationIds of a native job")
	}
	r, err := s.o.Reservation(v)
	if err != nil {
		return err
	}
	sc := &s.spec.Request.Scheduling
	sc.ReservationIDs = []string{r.ID}
	s.reserved = &r
	s.variable("SLURM_JOB_RESERVATION", v)
	s.note(0, "--reservation", "keeps the job to the reservation's nodes, from its start on")
	return nil
}

// reserve keeps the job to its reservation, when all is known that was said of
// nodes and times.
func (s *script) reserve() {
	if s.reserved == nil {
		return
	}
	if sc := &s.spec.Request.Scheduling; sc.NotBefore < s.reserved.Start {
		sc.NotBefore = s.reserved.Start
	}
	if len(s.spec.Gbatch.NodeNames) == 0 {
		s.spec.Gbatch.NodeNames = s.reserved.Nodes
	}
}
