package ask

import (
	"fmt"
	"maps"
	"slices"

	"gbatch/internal/job"
	"gbatch/internal/state"
	"gbatch/sched"
	"gbatch/sched/words"
)

// licenses are those that a document asks for, by name.
func licenses(asked map[string]int) (list []sched.License) {
	for _, name := range slices.Sorted(maps.Keys(asked)) {
		list = append(list, sched.License{Name: name, Count: int64(asked[name])})
	}
	return list
}

// refuseLicenses refuses a job that asks for licences which the site does not have, or
// not so many.
func (r Rules) refuseLicenses(spec *job.Spec) *state.Refusal {
	if spec.Gbatch == nil {
		return nil
	}
	for _, x := range licenses(spec.Gbatch.Licenses) {
		path := "gbatch.licenses." + x.Name
		total, known := r.Licenses[x.Name]
		switch {
		case !known && len(r.Licenses) == 0:
			return &state.Refusal{Code: state.NotFound, Path: path, Message: fmt.Sprintf("there is no licence %q: this site counts none", x.Name), Hint: "remove it, or ask an operator, who can count it: licenses in gctld.yaml"}
		case !known:
			return &state.Refusal{Code: state.NotFound, Path: path, Message: fmt.Sprintf("there is no licence %q", x.Name), Hint: listed("licences", r.Licenses)}
		case x.Count > total:
			return &state.Refusal{Code: state.Unsatisfiable, Path: path, Message: fmt.Sprintf("asks for %d, and the site has %s", x.Count, words.Plural(int(total), x.Name+" licence")), Hint: "ask for fewer"}
		}
	}
	return nil
}
