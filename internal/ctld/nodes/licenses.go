package nodes

import (
	"maps"
	"slices"

	"gbatch/internal/api"
	"gbatch/internal/state"
)

// licenses are those that the site counts, with what jobs have of them.
func (s *List) licenses(v *state.View) (list []api.License) {
	total := s.Conf().Licenses
	if len(total) == 0 {
		return nil
	}
	var use state.LicenseUse
	for j := range v.Live() {
		use.Add(j)
	}
	for _, name := range slices.Sorted(maps.Keys(total)) {
		list = append(list, api.License{Name: name, Total: total[name], Used: use.Used[name], Asked: use.Asked[name]})
	}
	return list
}
