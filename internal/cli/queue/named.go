package queue

import (
	"context"
	"fmt"
	"strings"

	"gbatch/internal/api"
	"gbatch/internal/cli"
	"gbatch/internal/cli/exit"
	"gbatch/internal/cli/named"
	"gbatch/internal/client"
	"gbatch/internal/job"
)

// maxNamed is how many jobs a command line may name by ranges.
const maxNamed = 1000

// asked is one job that a command line names.
type asked struct {
	id      string
	ofRange bool // there need not be one of every number
}

// namedJobs takes apart what people write: 12,14-16,3_[4,5] and UUIDs, and names.
func namedJobs(words []string) ([]asked, error) {
	var out []asked
	for _, word := range words {
		for _, id := range splitOutside(word) {
			first, last, isRange := rangeOf(id)
			if !isRange {
				out = append(out, asked{id: id})
				continue
			}
			if last < first || last-first >= maxNamed {
				return nil, exit.Usagef("%s names no numbers, or more than %d: write the lower one first, or choose by --user, --project, --name or --state", id, maxNamed)
			}
			for n := first; n <= last; n++ {
				out = append(out, asked{id: fmt.Sprint(n), ofRange: true})
			}
		}
	}
	return out, nil
}

// numbersOnly are the words if all are numbers of jobs, whose changes can be told
// apart; nil: any change may concern them.
func numbersOnly(words []string) (ids []string) {
	for _, word := range words {
		for _, id := range splitOutside(word) {
			if _, ok := job.ParseNumber(id); !ok {
				return nil
			}
			ids = append(ids, id)
		}
	}
	return ids
}

// rangeOf reads 14-16.
func rangeOf(id string) (first, last job.Number, ok bool) {
	a, b, cut := strings.Cut(id, "-")
	first, ok1 := job.ParseNumber(a)
	last, ok2 := job.ParseNumber(b)
	return first, last, cut && ok1 && ok2
}

// splitOutside splits at commas that are in no brackets.
func splitOutside(word string) []string {
	depth := 0
	return strings.FieldsFunc(word, func(c rune) bool {
		switch c {
		case '[':
			depth++
		case ']':
			depth--
		}
		return c == ',' && depth <= 0
	})
}

// fetchNamed gets the jobs that are named, in that order. A word that is no id is
// the name of jobs: all that wait or run, or, if there are none, those that ended.
func fetchNamed(ctx context.Context, a *cli.App, words []string) (*api.JobList, error) {
	ids, err := namedJobs(words)
	if err != nil {
		return nil, err
	}
	list := &api.JobList{}
	for _, id := range ids {
		d, err := a.Client.Job(ctx, id.id, client.JobOptions{})
		switch {
		case err == nil:
			list.Jobs = append(list.Jobs, d.Job)
		case !client.IsCode(err, api.CodeNotFound):
			return nil, err
		case id.ofRange:
		default:
			found, err := named.Jobs(ctx, a, id.id)
			if err != nil {
				return nil, err
			}
			list.Jobs = append(list.Jobs, found...)
		}
	}
	if list.Total = len(list.Jobs); list.Total == 0 && len(ids) > 0 {
		return nil, api.Errorf(api.CodeNotFound, "there are no jobs %s", strings.Join(words, " "))
	}
	return list, nil
}
