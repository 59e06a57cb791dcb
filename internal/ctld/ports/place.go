package ports

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"gbatch/internal/job"
	"gbatch/internal/state"
)

// place is a port of a rank of a job. No two have the same name, ever: what a browser has
// kept of one is not another's.
type place struct {
	number job.Number // by which it is found
	uuid   [16]byte   // by which it is that very one
	rank   int
	port   uint16
}

func placeOf(j *state.Job, rank int, port uint16) place { return place{j.Number, j.UUID, rank, port} }

// label is the first part of its host name: 8888-0-12-UUID is port 8888 of rank 0 of job 12.
func (p place) label() string {
	return fmt.Sprintf("%d-%d-%d-%s", p.port, p.rank, p.number, hex.EncodeToString(p.uuid[:]))
}

// parsePlace reads a label. There is one text for each place.
func parsePlace(label string) (p place, ok bool) {
	parts := strings.Split(label, "-")
	if len(parts) != 4 {
		return p, false
	}
	port, err := strconv.ParseUint(parts[0], 10, 16)
	if err != nil || port == 0 {
		return p, false
	}
	rank, err := strconv.ParseUint(parts[1], 10, 16)
	if err != nil {
		return p, false
	}
	number, ok := job.ParseNumber(parts[2])
	if !ok {
		return p, false
	}
	uuid, err := hex.DecodeString(parts[3])
	if err != nil || len(uuid) != len(p.uuid) {
		return p, false
	}
	p = place{number, [16]byte(uuid), int(rank), uint16(port)}
	return p, p.label() == label
}
