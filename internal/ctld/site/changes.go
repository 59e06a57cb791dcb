package site

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// WithStored adds the projects that gadm made.
func (c Config) WithStored(made []Project) (Config, error) {
	c.Projects = slices.Clone(c.Projects)
	for _, p := range made {
		if _, ok := c.Project(p.Name); ok {
			return c, fmt.Errorf("project %s is in the file, and was made by gadm too: take it out of the file, or first `gadm project remove %s`", p.Name, p.Name)
		}
		c.Projects = append(c.Projects, p)
	}
	return c, nil
}

// StoredProjects are the projects that gadm made.
func (c Config) StoredProjects() []Project {
	return slices.DeleteFunc(slices.Clone(c.Projects), func(p Project) bool { return !p.Stored })
}

// Text is the rules as a person writes them. No secret is in them.
func (c Config) Text() string {
	var b strings.Builder
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	e.CompactSeqIndent()
	if err := e.Encode(c); err != nil {
		panic(err) // values of our own types always encode
	}
	return b.String()
}
