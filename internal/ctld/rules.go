package ctld

import "gbatch/internal/control"

// Rules is the configuration as the controller takes it, for those who run one
// on their own, such as the simulator.
func (c Config) Rules() (control.Config, error) { return c.control() }
