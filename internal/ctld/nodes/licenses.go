package nodes

import (
	"maps"
	"slices"

	"gbatch/internal/api"
	"gbatch/internal/job"
	"gbatch/internal/state"
)

// licenses are those that the site counts, with what jobs have of them. An array asks
// by its tasks that are jobs.
func (s *List) licenses(v *state.View) (list []api.License) {
	total := s.Conf().Licenses
	if len(total) == 0 {
		return nil
	}
	used, asked := map[string]int64{}, map[string]int64{}
	for j := range v.All() {
		if len(j.Request.Shape.Licenses) == 0 || j.Tasks != nil || j.Cron != nil {
			continue
		}
		for _, x := range j.Request.Shape.Licenses {
			switch {
			case j.State.Active():
				used[x.Name] += x.Count
			case j.State == job.Queued:
				asked[x.Name] += x.Count
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(total)) {
		list = append(list, api.License{Name: name, Total: total[name], Used: used[name], Asked: asked[name]})
	}
	return list
}
