package image

import (
	"testing"

	"go.uber.org/goleak"
)

// A store that is closed leaves nothing running.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
