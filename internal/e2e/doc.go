// Package e2e tests gbatch as its users meet it: the built programs as
// processes, a real registry, real containers, files on disk. It holds tests
// and their harness only.
//
// The tests need root, docker-registry, htpasswd and a static busybox. What is
// missing is said, and the tests are skipped; with GBATCH_E2E_REQUIRED set, as
// `make test` does, that is a failure. GBATCH_BIN names a directory with the
// programs, else they are built. GBATCH_E2E_ROUNDS and GBATCH_E2E_SEED make
// the kill drill longer and repeat one.
package e2e
