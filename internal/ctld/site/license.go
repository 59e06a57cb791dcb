package site

import (
	"maps"
	"slices"
)

// maxLicenses bounds how many licences a site counts, and maxLicenseCount how many
// there are of one.
const (
	maxLicenses     = 1000
	maxLicenseCount = 1_000_000
)

func (c Config) checkLicenses(bad func(path, format string, a ...any)) {
	if len(c.Licenses) > maxLicenses {
		bad("licenses", "has %d entries, at most %d are allowed", len(c.Licenses), maxLicenses)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Licenses)) {
		switch n := c.Licenses[name]; {
		case !NameRule.MatchString(name):
			bad("licenses."+name, "%q: use letters, digits, '.', '_' and '-', at most 64", name)
		case n < 0 || n > maxLicenseCount:
			bad("licenses."+name, "%d: use 0 to %d", n, maxLicenseCount)
		}
	}
}
