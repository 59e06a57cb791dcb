package spawn

import (
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/opencontainers/runc/libcontainer"
	"github.com/opencontainers/runc/libcontainer/configs"
	"github.com/opencontainers/runc/libcontainer/configs/validate"
)

// Within makes libcontainer's container whose control group is another one's, with its
// processes. Where it is made anew libcontainer takes such a group for a mistake, so it is
// loaded as one that was made before and has not begun. Its control group must not be
// destroyed: of it there is only the directory, below state.
func Within(state, id string, config *configs.Config) (*libcontainer.Container, error) {
	if err := validate.Validate(config); err != nil {
		return nil, err
	}
	var have libcontainer.State
	have.ID, have.Config = id, *config
	b, err := json.Marshal(have)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(state, id)
	if err := os.Mkdir(dir, 0o711); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, "state.json"), b, 0o600); err != nil {
		return nil, err
	}
	return libcontainer.Load(state, id)
}
