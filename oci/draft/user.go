package draft

import (
	"github.com/opencontainers/runtime-spec/specs-go"

	"gbatch/oci/users"
)

// ResolveUser applies the user that Build left as text.
func ResolveUser(spec *specs.Spec, rootfs string) error {
	groups := Groups(spec)
	if spec.Process.User.Username == "" && len(groups) == 0 {
		return nil // the caller filled in numbers itself
	}
	u, err := users.Resolve(rootfs, spec.Process.User.Username, groups)
	if err != nil {
		return err
	}
	users.Apply(spec, u)
	return nil
}
