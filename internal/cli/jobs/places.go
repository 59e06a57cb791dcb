package jobs

import (
	"slices"
	"strconv"
	"strings"
)

// InPlaces says whether something is in one of the places that are asked for: clusters
// by their numbers and partitions by their names. Nothing asked for is everywhere.
func InPlaces(places []string, cluster int, partitions []string) bool {
	return len(places) == 0 || slices.ContainsFunc(places, func(p string) bool {
		n, err := strconv.Atoi(p)
		return err == nil && n == cluster || slices.Contains(partitions, p)
	})
}

// Partitions are those that a job names, or the one that it is in.
func Partitions(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}
