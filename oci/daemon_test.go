package oci_test

// daemonEnv makes the test binary play a daemon that can be killed.
const daemonEnv = "GBATCH_TEST_DAEMON"

func daemonMain() {}
