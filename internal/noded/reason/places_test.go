package reason

import "testing"

func TestPublic(t *testing.T) {
	p := NewPlaces([]Place{
		{Path: "/var/lib/gnoded", Name: "the state directory"}, {Path: "/var/lib/gnoded/images/", Name: "the image store"},
		{Path: "/srv/{project}/{user}", Name: "/project", Same: true}, {Path: "/", Name: "/all", Same: true}, {Path: "/srv/shared", Name: "/shared", Same: true},
	})
	for text, want := range map[string]string{
		"open /var/lib/gnoded/ranks/1.0/x: no space left":  "open the state directory: no space left",
		`mount "/var/lib/gnoded/images/l/ab": invalid`:     `mount "the image store": invalid`,
		"state directory /var/lib/gnoded cannot":           "state directory the state directory cannot",
		"link /var/lib/gnoded/a /var/lib/gnoded/b: denied": "link the state directory the state directory: denied",
		"open /var/lib/gnodedx/y: denied":                  "open /var/lib/gnodedx/y: denied",
		"in /data/var/lib/gnoded: as is":                   "in /data/var/lib/gnoded: as is",
		"open /srv/vision/ann/a/b.txt: denied":             "open /project/a/b.txt: denied",
		"open /srv/vision/ann: denied":                     "open /project: denied",
		"stat /srv/shared/x (again)":                       "stat /shared/x (again)",
		"exit code 3":                                      "exit code 3",
		"":                                                 "",
	} {
		if got := p.Public(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}
