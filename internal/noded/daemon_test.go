package noded

import (
	"io"
	"log"
)

// daemonEnv makes the test binary play a daemon that can be killed.
const daemonEnv = "GBATCH_TEST_NODED"

func daemonMain() {}

func nullLog() *log.Logger { return log.New(io.Discard, "", 0) }
